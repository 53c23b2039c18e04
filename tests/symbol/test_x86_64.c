/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instruction decoder compared with objdump, over the whole code of libraries from other compilers: every
 * length, and every address that an instruction names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/elf_image.h"
#include "base/x86_64.h"

/* A line of objdump's output: an instruction's address, and the address that the instruction names. */
struct line {
	uint64_t address, field; /* 0: it names none */
	bool is_strange;         /* objdump does not know the instruction */
};

/* The named address is the comment of an operand relative to the instruction pointer, or else the direct
 * operand of a jump or call. */
static bool read_line(FILE *listing, struct line *line)
{
	char *text = NULL;
	size_t room = 0;
	bool found = false;
	while (!found && getline(&text, &room, listing) > 0) {
		char *end;
		line->address = strtoull(text, &end, 16);
		found = end > text && end[0] == ':' && end[1] == '\t';
		if (!found)
			continue;
		const char *comment = strchr(end, '#'), *symbol = strchr(end, '<'), *target = symbol;
		line->is_strange = strstr(end, "(bad)") != NULL;
		line->field = comment ? strtoull(comment + 1, NULL, 16) : 0;
		while (!comment && target && target > end && target[-1] == ' ')
			target--;
		while (!comment && target && target > end && strchr("0123456789abcdef", target[-1]))
			target--;
		if (!comment && symbol)
			line->field = strtoull(target, NULL, 16);
	}
	free(text);
	return found;
}

static void check_line(const struct line *line, const struct line *next, const Elf64_Shdr *section,
                       const unsigned char *code)
{
	struct x86_instruction seen;
	const unsigned char *bytes = code + (line->address - section->sh_addr);
	if (!x86_decode(bytes, section->sh_size - (line->address - section->sh_addr), &seen))
		fail_msg("0x%llx: not decoded", (unsigned long long)line->address);
	uint64_t field = seen.field ? x86_address(&seen, bytes, line->address) : 0;
	if (line->address + seen.length != next->address || field != line->field)
		fail_msg("0x%llx: expected %llu bytes and place 0x%llx, seen %u and 0x%llx",
		         (unsigned long long)line->address,
		         (unsigned long long)(next->address - line->address), (unsigned long long)line->field,
		         seen.length, (unsigned long long)field);
}

static void check_library(void **state)
{
	const char *path = *state;
	struct elf_image image;
	char command[256];
	if (!elf_image_open(&image, path))
		skip();
	const Elf64_Shdr *section = elf_image_section(&image, ".text");
	const Elf_Data *code = section ? elf_image_data(&image, section) : NULL;
	assert_non_null(code);
	snprintf(command, sizeof(command), "objdump -d -w -j .text --no-show-raw-insn %s", path);
	FILE *listing = popen(command, "r");
	assert_non_null(listing);
	struct line line, next;
	size_t checked = 0;
	for (bool any = read_line(listing, &line); any && read_line(listing, &next); line = next)
		if (!line.is_strange) {
			check_line(&line, &next, section, code->d_buf);
			checked++;
		}
	assert_int_equal(pclose(listing), 0);
	elf_image_close(&image);
	print_message("%s: %zu instructions\n", path, checked);
	assert_true(checked > 100000);
}

/* Random bytes as code: the decoder does not read beyond its limit, and no instruction is too long. */
static void test_any_bytes(void **state)
{
	uint64_t random = 1;
	(void)state;
	for (int i = 0; i < 1000000; i++) {
		struct x86_instruction seen;
		size_t size = (size_t)i % (X86_BYTES_MAX + 3);
		unsigned char *bytes = malloc(size + 1);
		assert_non_null(bytes);
		for (size_t at = 0; at < size; at++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			bytes[at] = (unsigned char)(random >> 56);
		}
		if (x86_decode(bytes, size, &seen)) {
			assert_true(seen.length > 0 && seen.length <= size && seen.length <= X86_BYTES_MAX);
			assert_true(seen.field + seen.field_size <= seen.length);
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(check_library, (char *)"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"),
		cmocka_unit_test_prestate(check_library, (char *)"/lib/x86_64-linux-gnu/libc.so.6"),
		cmocka_unit_test(test_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
