/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds at every instruction of several workloads, and compares the traces with a shadow stack. To pass,
 * no trace may be wrong, at least 99.99 % of the traces must be complete, and the memo must never change a
 * trace. Three workloads have a limit of their own, with the reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <iconv.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modules/modules.h"
#include "step.h"

static volatile int sink;
static uint64_t all_steps, all_exact;

/* `least` is the required share of complete traces. */
static struct step_result check_within(const char *name, void (*work)(void *), void *argument, double least)
{
	struct step_result result;

	modules_refresh(false);
	step_run(name, work, argument, &result);
	assert_true(result.steps > 100);
	assert_int_equal(result.memo_differs, 0);
	assert_int_equal(result.wrong, 0);
	assert_int_equal(result.exact + result.incomplete, result.steps);
	assert_true((double)result.exact >= least * (double)result.steps);
	return result;
}

static void check(const char *name, void (*work)(void *), void *argument)
{
	const struct step_result result = check_within(name, work, argument, 0.9999);

	all_steps += result.steps;
	all_exact += result.exact;
}

__attribute__((noinline)) static int recurse(int n)
{
	int (*volatile self)(int) = recurse; /* otherwise it becomes a loop */
	return n == 0 ? sink : self(n - 1) + n;
}

__attribute__((noinline)) static int with_alloca(int n)
{
	char *room = alloca((size_t)n * 24 + 8);
	memset(room, n, (size_t)n * 24 + 8);
	sink += room[n];
	return n == 0 ? 0 : with_alloca(n - 1) + room[1];
}

__attribute__((noinline)) static int with_alignment(int n)
{
	_Alignas(64) char room[128];
	memset(room, n, sizeof(room));
	sink += room[n & 127];
	return n == 0 ? 0 : with_alignment(n - 1) + room[1];
}

__attribute__((noinline)) static int with_varargs(const char *kinds, ...)
{
	va_list list;
	int sum = 0;
	va_start(list, kinds);
	for (; *kinds; kinds++)
		sum += *kinds == 'd' ? (int)va_arg(list, double) : va_arg(list, int);
	va_end(list);
	return sum;
}

__attribute__((noinline)) static int big_frame(int n)
{
	char room[70000];
	memset(room, n, 100);
	__asm__ volatile("" : : "r"(room) : "memory");
	return room[n & 63];
}

static void own_code(void *argument)
{
	(void)argument;
	sink += recurse(40);
	sink += with_alloca(12);
	sink += with_alignment(8);
	sink += with_varargs("idid", 1, 2.0, 3, 4.0);
	sink += big_frame(3);
}

__attribute__((noinline)) static int compare_ints(const void *a, const void *b)
{
	const int left = *(const int *)a, right = *(const int *)b;
	return left < right ? -1 : left > right;
}

static void libc_code(void *argument)
{
	int numbers[60];
	char text[400], *copy;
	struct timespec clock;
	struct tm calendar;
	time_t moment = 1700000000;

	(void)argument;
	for (int i = 0; i < 60; i++)
		numbers[i] = (i * 7919) % 61;
	qsort(numbers, 60, sizeof(numbers[0]), compare_ints);
	snprintf(text, sizeof(text), "%d %s %lx %-20s|", 42, "text", 0xfeedUL, "left");
	copy = strdup(text);
	copy = realloc(copy, 5000);
	sink += (int)strlen(copy) + strcmp(copy, text);
	sink += strstr(text, "left") != NULL;
	free(copy);
	clock_gettime(CLOCK_MONOTONIC, &clock);
	gmtime_r(&moment, &calendar);
	strftime(text, sizeof(text), "%c", &calendar);
	sink += getenv("HOME") != NULL;
}

static void float_code(void *argument)
{
	char text[100];

	(void)argument;
	snprintf(text, sizeof(text), "%f %g %.40e", 3.25, 1e100, 1.1e-290);
	sink += (int)strtod("12.5e3", NULL);
	sink += (int)strtod("1.7976931348623157081452742373170435679807056752584e-300", NULL);
}

static void iconv_code(void *argument)
{
	char in[] = "caf\xe9 cr\xe8me", out[64];
	char *from = in, *to = out;
	size_t left = sizeof(in) - 1, room = sizeof(out);
	iconv_t table = iconv_open("UTF-8", "ISO-8859-1");

	(void)argument;
	iconv(table, &from, &left, &to, &room);
	iconv_close(table);
}

static void sqlite_code(void *argument)
{
	sqlite3 *db = argument;
	static const char *const statements[] = {
		("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2)"
		 " INSERT INTO t(b) SELECT 'text ' || i FROM n"),
		"SELECT upper(b), count(*) FROM t WHERE b LIKE '%1%' GROUP BY 1 ORDER BY 2 DESC, 1",
	};
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		sqlite3_exec(db, statements[i], NULL, NULL, NULL);
}

/* The first call of each function uses the lazy PLT and the resolver, because the program is linked with
 * -z lazy. */
static void first_calls(void *argument)
{
	(void)argument;
	sink += (int)labs(-3) + atoi("17") + (int)strtoul("99", NULL, 10);
	sink += strcasecmp("A", "b") + (strpbrk("abc", "c") != NULL) + (int)strspn("aab", "a");
	sink += ffsl(8) + (strrchr("a/b", '/') != NULL);
}

static void load_library(void *argument)
{
	(void)argument;
	void *library = dlopen("libm.so.6", RTLD_NOW);
	double (*function)(double) = (double (*)(double))dlsym(library, "exp");
	sink += function ? (int)function(1.5) : 0;
	dlclose(library);
}

extern int catch_exceptions(void);

static void throw_exceptions(void *argument)
{
	(void)argument;
	sink += catch_exceptions();
}

/* OpenSSL's assembly has the oddest CFA rules of a Debian system. */
typedef unsigned char *digest_function(const unsigned char *data, size_t size, unsigned char *out);

static void hash_code(void *argument)
{
	static const char *const digests[] = { "SHA1", "SHA256", "SHA512" };
	unsigned char data[1000] = { 1, 2, 3 }, out[64];

	for (size_t i = 0; i < 3; i++) {
		digest_function *digest = (digest_function *)dlsym(argument, digests[i]);
		sink += digest && digest(data, sizeof(data), out) ? out[0] : 0;
	}
}

static void test_exceptions(void **state)
{
	(void)state;
	/* While an exception lands, the trace is truncated (distrust.h). That is at most 1/20 of an
	 * exception's instructions, and none of the search before. */
	assert_in_range(check_within("exceptions", throw_exceptions, NULL, 0.95).incomplete, 1000, 100000);
}

static void test_libcrypto(void **state)
{
	void *library = dlopen("libcrypto.so.3", RTLD_NOW);

	(void)state;
	if (library == NULL)
		skip();
	/* Its first use runs start-up code without unwind information. */
	hash_code(library);
	check("libcrypto", hash_code, library);
	dlclose(library);
}

static void test_own_code(void **state)
{
	(void)state;
	check("own code", own_code, NULL);
}

static void test_libc(void **state)
{
	(void)state;
	check("libc", libc_code, NULL);
	/* Loads a library. The start-up code that the compiler adds to every library has functions without
	 * unwind information (register_tm_clones), 18 steps. */
	check_within("iconv, first", iconv_code, NULL, 0.999);
	check("iconv", iconv_code, NULL);
	/* glibc's multiplication in assembly (__mpn_mul_1 and similar functions) pushes registers that its
	 * unwind information omits. Traces are truncated there. */
	assert_in_range(check_within("floats", float_code, NULL, 0.9).incomplete, 100, 100000);
}

static void test_first_calls(void **state)
{
	(void)state;
	check("first calls", first_calls, NULL);
	check("dlopen", load_library, NULL);
}

static void test_sqlite(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)", NULL, NULL, NULL),
	                 SQLITE_OK);
	check("sqlite", sqlite_code, db);
	sqlite3_close(db);
}

/* All workloads without a limit of their own, together. */
static void test_all(void **state)
{
	(void)state;
	print_message("together: %llu steps, %.5f %% exact, none wrong\n", (unsigned long long)all_steps,
	              100.0 * (double)all_exact / (double)all_steps);
	assert_true(all_steps > 200000);
	assert_true((double)all_exact >= 0.9999 * (double)all_steps);
}

/* An argument selects one test by its name. */
int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_code),    cmocka_unit_test(test_libc),
		cmocka_unit_test(test_first_calls), cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_libcrypto),   cmocka_unit_test(test_sqlite),
		cmocka_unit_test(test_all),
	};

	if (modules_init() != 0)
		return 1;
	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests_name("unwinding at every instruction", tests, NULL, NULL);
}
