/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an object's names and lines come from, and why some are missing: the description of each form of the
 * fixture names its sources.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbol/elf_image.h"
#include "symbol/symbol.h"

#define BUILD_ID "a1b2c3d4e5f60718"
#define NOT_IN_DEBUG "no debug file in " FIXTURES "/debug"

static void expect(const char *path, const char *build_id, const char *names, const char *lines,
                   const char *why_not)
{
	struct symbol_description seen;
	assert_true(symbol_describe(path, build_id, &seen));
	if (strcmp(seen.names_from ? seen.names_from : "-", names) != 0 ||
	    strcmp(seen.lines_from ? seen.lines_from : "-", lines) != 0 || strcmp(seen.why_not, why_not) != 0)
		fail_msg("%s: expected %s, %s, \"%s\"; seen %s, %s, \"%s\"", path, names, lines, why_not,
		         seen.names_from ? seen.names_from : "-", seen.lines_from ? seen.lines_from : "-",
		         seen.why_not);
}

static void test_shapes(void **state)
{
	(void)state;
	assert_true(symbol_set_debug_path(FIXTURES "/debug"));
	expect(FIXTURES "/full.so", BUILD_ID, "symbol table", "the object", "");
	expect(FIXTURES "/stripped.so", BUILD_ID, "debug file", "debug file", "");
	expect(FIXTURES "/anonymous.so", "", "symbol table", "the object", "");
	expect(FIXTURES "/linked.so", "", "debug file", "debug file", "");
	expect(FIXTURES "/gone.so", BUILD_ID, "debug file", "debug file", "");
	expect(FIXTURES "/gone.so", "0102030405", "-", "-",
	       "names: the file no longer exists; " NOT_IN_DEBUG
	       "; lines: the file no longer exists; " NOT_IN_DEBUG);
	expect(FIXTURES "/made", "", "-", "-",
	       "names: the file is not a readable ELF object; " NOT_IN_DEBUG
	       "; lines: the file is not a readable ELF object; " NOT_IN_DEBUG);
}

static void test_without_debug_file(void **state)
{
	(void)state;
	assert_true(symbol_set_debug_path(""));
	expect(FIXTURES "/bare.so", BUILD_ID, "dynamic symbols", "-",
#ifdef __x86_64__
	       "names: stripped; no debug file in no folder; no bare.a: install a package such as bare-dev"
#else
	       "names: stripped; no debug file in no folder"
#endif
	       "; lines: no debug information; no debug file in no folder");
	expect(FIXTURES "/embedded.so", BUILD_ID, ".gnu_debugdata", "-",
	       "lines: no debug information; no debug file in no folder");
	/* The file is not the build that was mapped. */
	expect(FIXTURES "/other.so", BUILD_ID, "-", "-",
	       "names: the file at the path is now another one; no debug file in no folder"
	       "; lines: the file at the path is now another one; no debug file in no folder");
}

static void expect_archive(const char *path, const char *names, const char *part)
{
	struct symbol_description seen;
	struct elf_image image;
	char build_id[BUILD_ID_TEXT];
	assert_true(elf_image_open(&image, path));
	elf_image_build_id(&image, build_id);
	elf_image_close(&image);
	assert_true(symbol_describe(path, build_id, &seen));
	assert_string_equal(seen.names_from, names);
	if (!strstr(seen.why_not, part))
		fail_msg("%s: expected \"…%s…\", seen \"%s\"", path, part, seen.why_not);
}

static void test_archives(void **state)
{
	(void)state;
#ifdef __x86_64__
	assert_true(symbol_set_debug_path(FIXTURES "/debug"));
	expect_archive(ARCHIVES "/same/libarchived.so", "archive",
	               "names: stripped; " NOT_IN_DEBUG "; lines");
	expect_archive(ARCHIVES "/text/libarchived.so", "dynamic symbols",
	               "; libarchived.a is of another build; ");
	expect_archive(ARCHIVES "/alone/libarchived.so", "dynamic symbols",
	               "; no libarchived.a: install a package such as libarchived-dev; ");
#else
	skip();
#endif
}

/* The folders' names are longer than the text may be. */
static void test_long_reasons_are_cut(void **state)
{
	struct symbol_description seen;
	char folders[1024];
	(void)state;
	memset(folders, 'x', sizeof(folders) - 1);
	folders[sizeof(folders) - 1] = 0;
	assert_true(symbol_set_debug_path(folders));
	assert_true(symbol_describe(FIXTURES "/bare.so", BUILD_ID, &seen));
	assert_int_equal(strlen(seen.why_not), sizeof(seen.why_not) - 1);
}

static char log_path[] = "/tmp/symbol_describe.XXXXXX";

/* The earlier tests described objects with missing names. */
static void test_debug_log(void **state)
{
	char text[65536];
	FILE *log = fopen(getenv("QUERYPROF_DEBUG_FILE"), "r");
	(void)state;
	assert_non_null(log);
	text[fread(text, 1, sizeof(text) - 1, log)] = 0;
	fclose(log);
	remove(getenv("QUERYPROF_DEBUG_FILE"));
	if (!strstr(text, FIXTURES "/full.so (" BUILD_ID "): names from symbol table\n") ||
	    !strstr(text, FIXTURES
	            "/gone.so (0102030405): names from nowhere; the file no longer exists; " NOT_IN_DEBUG
	            "\n"))
		fail_msg("the log says:\n%s", text);
}

int main(int argc, char **argv)
{
	(void)argc;
	/* A program reads the environment only when it starts. */
	if (!getenv("QUERYPROF_DEBUG")) {
		int fd = mkstemp(log_path);
		if (fd < 0 || close(fd) != 0)
			return 1;
		setenv("QUERYPROF_DEBUG", "symbols", 1);
		setenv("QUERYPROF_DEBUG_FILE", log_path, 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),    cmocka_unit_test(test_without_debug_file),
		cmocka_unit_test(test_archives),  cmocka_unit_test(test_long_reasons_are_cut),
		cmocka_unit_test(test_debug_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
