/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code from /tmp/perf-PID.map: this program writes its own.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store.h"
#include "base/process_start.h"
#include "frames/process_space.h"
#include "symbol/perf_map.h"

static char path[64], other[80];
static int64_t began;

/* Replaces the store's function: the process has no modules. */
const struct module *store_locate(uint64_t address)
{
	(void)address;
	return NULL;
}

int64_t process_start_ns(void)
{
	return began;
}

static void write_text(const char *to, const char *mode, const char *text)
{
	FILE *file = fopen(to, mode);
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void expect(uint64_t address, const char *name)
{
	char *seen = perf_map_name(getpid(), began, address);
	if (!seen != !name || (seen && strcmp(seen, name) != 0))
		fail_msg("0x%llx: expected %s, seen %s", (unsigned long long)address, name ? name : "nothing",
		         seen ? seen : "nothing");
	free(seen);
}

static int set_up(void **state)
{
	struct timespec now;
	(void)state;
	clock_gettime(CLOCK_REALTIME, &now);
	began = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	unlink(path);
	rmdir(path);
	unlink(other);
	return 0;
}

static int clean_up(void **state)
{
	return set_up(state);
}

static void test_names(void **state)
{
	(void)state;
	expect(0x1000, NULL);
	write_text(path, "w",
	           "1000 10 one\n7f0000002000 20 LazyCompile:~two /a b.js:1\n"
	           "7f0000001000 8 before\n1010 1 next\n");
	expect(0xfff, NULL);
	expect(0x1000, "one");
	expect(0x100f, "one");
	expect(0x1010, "next");
	expect(0x1011, NULL);
	expect(0x7f000000201f, "LazyCompile:~two /a b.js:1");
	expect(0x7f0000002020, NULL);
	expect(0x7f0000001007, "before");
	expect(UINT64_MAX, NULL);
}

/* Code is dropped, and other code takes its place. */
static void test_the_newest_counts(void **state)
{
	(void)state;
	write_text(path, "w", "1000 100 old\n1040 10 inside\n");
	expect(0x1045, "inside");
	expect(0x1050, "old");
	write_text(path, "a", "1020 40 new\n");
	expect(0x1045, "new");
	expect(0x101f, "old");
	expect(0x1060, "old");
	write_text(path, "a", "1000 100 newest\n");
	expect(0x1045, "newest");
}

static void test_lines_that_grow(void **state)
{
	(void)state;
	write_text(path, "w", "1000 10 whole\n2000 10 ha");
	expect(0x1000, "whole");
	expect(0x2000, NULL);
	write_text(path, "a", "lf\n3000 10");
	expect(0x2000, "half");
	expect(0x3000, NULL);
	write_text(path, "a", "0 last\n");
	expect(0x3000, "last");
	expect(0x30ff, "last");
	expect(0x1000, "whole");
}

static void test_another_file(void **state)
{
	(void)state;
	write_text(path, "w", "1000 10 first of a longer file\n");
	expect(0x1000, "first of a longer file");
	write_text(other, "w", "1000 10 second\n");
	assert_int_equal(rename(other, path), 0);
	expect(0x1000, "second");
	write_text(path, "w", "2000 10 x\n"); /* shorter, in place */
	expect(0x1000, NULL);
	expect(0x2000, "x");
	write_text(path, "w", "3000 10 longer, in place\n"); /* like a new file with the same inode */
	expect(0x2000, NULL);
	expect(0x3000, "longer, in place");
	unlink(path);
	expect(0x2000, NULL);
}

static void test_strange_lines(void **state)
{
	(void)state;
	write_text(path, "w",
	           "\n \nname\n1000\n1000 \n1000 10\n1000 10 \n0x1000 10 hex\n-1 10 minus\n"
	           "1000 0 empty\nffffffffffffffffffff ffffffffffffffffff most\n"
	           " 1000 10 blank\nfffffffffffffff0 10 end\n5000 10 good\n");
	expect(0x1000, "hex");
	expect(UINT64_MAX, "end");
	expect(0x5000, "good");
	expect(0xfffffffffffffff0, "end");
	expect(0, NULL);
}

static void test_not_our_file(void **state)
{
	(void)state;
	write_text(other, "w", "1000 10 other\n");
	assert_int_equal(symlink(other, path), 0);
	expect(0x1000, NULL);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect(0x1000, NULL);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	expect(0x1000, NULL);
	rmdir(path);
	/* An earlier process with the same id left the file. */
	write_text(path, "w", "1000 10 stale\n");
	expect(0x1000, "stale");
	struct timespec old[2] = { { .tv_sec = began / 1000000000 - 60 },
		                   { .tv_sec = began / 1000000000 - 60 } };
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	expect(0x1000, NULL);
	/* Kernels before 6.13 may give the new content the old time. Then the size shows the change. */
	write_text(path, "w", "1000 10 refreshed\n");
	expect(0x1000, "refreshed");
	assert_int_equal(truncate(path, (off_t)1 << 40), 0); /* a hole: too large */
	expect(0x1000, NULL);
	unlink(path);
	write_text(path, "w", "1000 10 foreign\n");
	if (chown(path, 12345, 12345) == 0)
		expect(0x1000, NULL);
	else
		print_message("not root: a file of another owner is not tested\n");
}

static void check_text(char *seen, const char *expected)
{
	if (!expected)
		assert_null(seen);
	else
		assert_string_equal(seen, expected);
	free(seen);
}

/* Addresses as in a trace, and as in the process. */
static void test_addresses(void **state)
{
	(void)state;
	write_text(path, "w", "7f0000002000 20 Script:run\n");
	check_text(address_symbol(process_space(), STORE_NOWHERE | 0x7f0000002004), "Script:run");
	check_text(address_symbol(process_space(), 0x7f0000002004), "Script:run");
	check_text(address_text(process_space(), STORE_NOWHERE | 0x7f0000002004), "Script:run");
	check_text(address_line(process_space(), STORE_NOWHERE | 0x7f0000002004), NULL);
	check_text(address_symbol(process_space(), STORE_NOWHERE | 0x7f0000003000), NULL);
	check_text(address_text(process_space(), STORE_NOWHERE | 0x7f0000003000), "0x7f0000003000");
}

int main(void)
{
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(other, sizeof(other), "%s.other", path);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, set_up, clean_up),
		cmocka_unit_test_setup_teardown(test_the_newest_counts, set_up, clean_up),
		cmocka_unit_test_setup_teardown(test_lines_that_grow, set_up, clean_up),
		cmocka_unit_test_setup_teardown(test_another_file, set_up, clean_up),
		cmocka_unit_test_setup_teardown(test_strange_lines, set_up, clean_up),
		cmocka_unit_test_setup_teardown(test_not_our_file, set_up, clean_up),
		cmocka_unit_test_setup_teardown(test_addresses, set_up, clean_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
