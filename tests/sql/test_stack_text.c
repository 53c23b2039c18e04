/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as JSON arrays: accepted arrays, refused arrays, and the results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames/stack_text.h"
#include "frames/address.h"
#include "symbol/symbol.h"

/* Addresses below 10 belong to no module. The name of 10 must be quoted in JSON. */
char *address_text(const struct address_space *space, uint64_t address)
{
	char text[64];

	(void)space;
	snprintf(text, sizeof(text),
	         address == 10  ? "op\"\\\n"
	         : address < 10 ? "0x%llx"
	                        : "f%llu",
	         (unsigned long long)address);
	return strdup(text);
}

char *address_symbol(const struct address_space *space, uint64_t address)
{
	return address_text(space, address);
}

char *address_line(const struct address_space *space, uint64_t address)
{
	char text[64];

	(void)space;
	snprintf(text, sizeof(text), "file.c:%llu", (unsigned long long)address);
	return address < 10 ? NULL : strdup(text);
}

/* 20 has two inlined functions, 21 has none. Of 22 only the function is known. Of 23 it is only known that
 * something is inlined. */
size_t address_frames(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                      size_t room)
{
	static const struct symbol_frame inlined[] = {
		{ "_ZN3foo3barEi", "a.h", 3, true },
		{ "quote\"", "b\\.h", 7, true },
		{ "whole", "c.c", 9, false },
	};
	static const struct symbol_frame unknown[] = { { NULL, NULL, 0, true }, { "f", NULL, 0, false } };

	(void)space;
	assert_true(room >= 3);
	memcpy(frames, address == 23 ? unknown : inlined, address == 23 ? sizeof(unknown) : sizeof(inlined));
	if (address == 21)
		frames[0] = (struct symbol_frame){ "whole", "c.c", 9, false };
	if (address == 22)
		frames[0] = (struct symbol_frame){ "whole", NULL, 0, false };
	return address == 20 ? 3 : address == 23 ? 2 : address >= 21 ? 1 : 0;
}

char *symbol_demangle(const char *name)
{
	return strcmp(name, "_ZN3foo3barEi") == 0 ? strdup("foo::bar(int)") : NULL;
}

static void test_line_with_inlines(void **state)
{
	static const struct {
		uint64_t address;
		const char *json;
	} cases[] = {
		{ 20, "[\"c.c:9\",\"a.h:3:foo::bar(int)\",\"b\\\\.h:7:quote\\\"\"]" },
		{ 21, "[\"c.c:9\"]" },
		{ 22, "[\"file.c:22\"]" },
		{ 23, "[\"file.c:23\",\"??:0:??\"]" },
		{ 19, "[\"file.c:19\"]" },
		{ 9, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *seen = address_line_with_inlines(NULL, cases[i].address);

		if (!seen != !cases[i].json || (seen && strcmp(seen, cases[i].json)))
			fail_msg("%d: expected %s, seen %s", (int)cases[i].address, cases[i].json, seen);
		free(seen);
	}
}

static void test_text(void **state)
{
	static const struct {
		const char *trace, *text;
	} good[] = {
		{ "[]", "" },
		{ " [ ] ", "" },
		{ "[1]", "0x1" },
		{ "[11,12,13]", "f11;f12;f13" },
		{ "\t[ 11 ,\r\n12 ]\n", "f11;f12" },
		{ "[18446744073709551615]", "f18446744073709551615" },
		{ "[-1]", "f18446744073709551615" },
		{ "[-9223372036854775808]", "f9223372036854775808" },
	};
	static const char *const bad[] = {
		"",
		" ",
		"[",
		"]",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"1",
		"[1] x",
		"[1]]",
		"[[1]]",
		"[1 2]",
		"[1,,2]",
		"[1.5]",
		"[1e3]",
		"[\"1\"]",
		"[null]",
		"[0x10]",
		"[+1]",
		"[-]",
		"[18446744073709551616]",
		"[-9223372036854775809]",
		"[1[2]",
		"{}",
		"null",
		"[1;2]",
	};
	bool is_bad;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		char *text = stack_text(NULL, good[i].trace, ";", &is_bad);

		if (!text || is_bad || strcmp(text, good[i].text))
			fail_msg("%s gave %s, expected %s", good[i].trace, text ? text : "NULL",
			         good[i].text);
		free(text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *text = stack_text(NULL, bad[i], ";", &is_bad);

		if (text || !is_bad)
			fail_msg("'%s' was taken and gave %s", bad[i], text ? text : "NULL");
	}
}

static void test_json(void **state)
{
	bool bad;
	char *symbols = stack_symbols(NULL, "[11,10,9]", &bad), *lines = stack_lines(NULL, "[11,9]", &bad);

	(void)state;
	assert_string_equal(symbols, "[\"f11\",\"op\\\"\\\\\\u000a\",\"0x9\"]");
	assert_string_equal(lines, "[\"file.c:11\",null]");
	free(symbols);
	free(lines);
}

static void test_address(void **state)
{
	static const struct {
		const char *text;
		bool taken;
		uint64_t address;
	} cases[] = {
		{ "0", true, 0 },
		{ "123", true, 123 },
		{ "-1", true, UINT64_MAX },
		{ "0x7fFF", true, 0x7fff },
		{ "0Xffffffffffffffff", true, UINT64_MAX },
		{ "18446744073709551615", true, UINT64_MAX },
		{ "", false, 0 },
		{ "0x", false, 0 },
		{ "0x1g", false, 0 },
		{ " 1", false, 0 },
		{ "1 ", false, 0 },
		{ "1.0", false, 0 },
		{ "0x10000000000000000", false, 0 },
		{ "a", false, 0 },
		{ "-0x1", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t address = 0;
		bool taken = address_parse(cases[i].text, &address);

		if (taken != cases[i].taken || (taken && address != cases[i].address))
			fail_msg("'%s': taken %d, %llx", cases[i].text, taken, (unsigned long long)address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_with_inlines),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
