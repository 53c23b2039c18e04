/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs of programs in each of the linkers' layouts: bound lazily and immediately, for processors that
 * check jumps (.plt.sec), static ones. Every whole stub has the name of the called function, and nothing else
 * in those sections has a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/elf_image.h"
#include "symbol/symbol.h"

struct program {
	char path[4096], build_id[BUILD_ID_TEXT];
	struct elf_image image;
	struct symbol_object object;
};

static bool open_program(const char *name, struct program *program)
{
	snprintf(program->path, sizeof(program->path), STUBS "/%s", name);
	if (!elf_image_open(&program->image, program->path))
		return false;
	elf_image_build_id(&program->image, program->build_id);
	program->object = (struct symbol_object){ .path = program->path, .build_id = program->build_id };
	return true;
}

static bool has_suffix(const char *text)
{
	size_t length = text ? strlen(text) : 0;
	return length > 4 && strcmp(text + length - 4, "@plt") == 0;
}

/* Counts the bytes of the section that have the name `wanted` (NULL: the name of any stub). */
static uint64_t count_bytes(const struct program *program, const char *name, const char *wanted)
{
	const Elf64_Shdr *section = elf_image_section(&program->image, name);
	uint64_t count = 0;
	for (uint64_t at = 0; section && at < section->sh_size; at++) {
		const char *seen = symbol_name(&program->object, section->sh_addr + at);
		if (seen && !has_suffix(seen))
			fail_msg("%s: %s in %s", program->path, seen, name);
		count += seen && (!wanted || strcmp(seen, wanted) == 0);
	}
	return count;
}

static uint64_t size_of(const struct program *program, const char *name)
{
	const Elf64_Shdr *section = elf_image_section(&program->image, name);
	return section ? section->sh_size : 0;
}

static void test_dynamic(void **state)
{
	static const struct {
		const char *name, *section, *stub;
		uint64_t size;
	} cases[] = {
		{ "stub_lazy", ".plt", "getppid@plt", 16 },
		{ "stub_now", ".plt", "getppid@plt", 16 },
		{ "stub_now", ".plt.got", "__cxa_finalize@plt", 8 },
		{ "stub_fixed", ".plt", "getppid@plt", 16 },
		{ "stub_checked", ".plt.sec", "getppid@plt", 16 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program program;
		assert_true(open_program(cases[i].name, &program));
		uint64_t seen = count_bytes(&program, cases[i].section, cases[i].stub);
		if (seen != cases[i].size)
			fail_msg("%s: %d bytes of %s are %s", cases[i].name, (int)seen, cases[i].section,
			         cases[i].stub);
		/* All but the first stub of .plt, which resolves the called function. */
		if (strcmp(cases[i].section, ".plt") == 0)
			assert_int_equal(count_bytes(&program, ".plt", NULL), size_of(&program, ".plt") - 16);
		elf_image_close(&program.image);
	}
}

static bool is_chosen(const struct elf_image *image, const char *name, size_t length)
{
	const Elf64_Shdr *section = elf_image_section_of_type(image, SHT_SYMTAB);
	const Elf64_Sym *symbols = elf_image_read(image, section->sh_offset, section->sh_size);
	const char *names = elf_image_read(image, image->sections[section->sh_link].sh_offset,
	                                   image->sections[section->sh_link].sh_size);
	bool found = false;
	for (size_t i = 0; i < section->sh_size / sizeof(*symbols); i++)
		found |= ELF64_ST_TYPE(symbols[i].st_info) == STT_GNU_IFUNC &&
		         strlen(names + symbols[i].st_name) == length &&
		         memcmp(names + symbols[i].st_name, name, length) == 0;
	free((void *)symbols);
	free((void *)names);
	return found;
}

static void test_static(void **state)
{
	static const char *const names[] = { "stub_static", "stub_static_pie" };
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct program program;
		if (!open_program(names[i], &program))
			skip(); /* no static libc */
		const Elf64_Shdr *section = elf_image_section(&program.image, ".plt");
		assert_non_null(section);
		assert_true(section->sh_size >= 16);
		bool has_strlen = false;
		for (uint64_t at = 0; at < section->sh_size; at += 16) {
			const char *name = symbol_name(&program.object, section->sh_addr + at);
			/* A program that is linked with -static-pie has the first stub all the same. */
			if (!name && at == 0 && i == 1)
				continue;
			if (!has_suffix(name) || !is_chosen(&program.image, name, strlen(name) - 4))
				fail_msg("%s: %s at .plt+%d", names[i], name ? name : "nothing", (int)at);
			has_strlen |= strcmp(name, "strlen@plt") == 0;
		}
		assert_true(has_strlen);
		elf_image_close(&program.image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_static),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
