/* SPDX-License-Identifier: Apache-2.0 */
/* Which statements pragma_rewrite() recognizes as queryprof's PRAGMAs, how it rewrites them, and where it
 * finds their end. `|` in a text marks the end of the first statement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sql/pragma.h"

#define READ(name) "SELECT get_setting('" name "') AS \"" name "\""
#define WRITE(name, value) "SELECT set_setting('" name "','" value "') AS \"" name "\""

static const struct {
	const char *sql, *becomes;
} ours[] = {
	{ "PRAGMA query_id|", READ("query_id") },
	{ "PRAGMA query_id;|", READ("query_id") },
	{ "pragma query_id ;| SELECT 1", READ("query_id") },
	{ "PrAgMa\tQUERY_ID\n;|\n\nSELECT 1; SELECT 2", READ("query_id") },
	{ "  \n ;; PRAGMA query_id|", READ("query_id") },
	{ "-- a comment\n/* and ; another */ PRAGMA/**/query_id -- the end|", READ("query_id") },
	{ "/**/PRAGMA query_id /* open|", READ("query_id") },
	{ "/*/ ; */PRAGMA query_id|", READ("query_id") },
	{ "PRAGMA system.query_id|", READ("query_id") },
	{ "PRAGMA \"SYSTEM\" . [query_id]|", READ("query_id") },
	{ "PRAGMA `query_id`;|x", READ("query_id") },
	{ "PRAGMA 'query_id'|", READ("query_id") },
	{ "PRAGMA query_id=abc|", WRITE("query_id", "abc") },
	{ "PRAGMA query_id = 'it''s; here' ;| SELECT ';'", WRITE("query_id", "it''s; here") },
	{ "PRAGMA query_id = \"a\"\"b\"|", WRITE("query_id", "a\"b") },
	{ "PRAGMA query_id = [a b]|", WRITE("query_id", "a b") },
	{ "PRAGMA query_id = ''|", WRITE("query_id", "") },
	{ "PRAGMA query_id('x')|", WRITE("query_id", "x") },
	{ "PRAGMA query_id ( x ) ;|", WRITE("query_id", "x") },
	{ "PRAGMA log_queries = ON|", WRITE("log_queries", "ON") },
	{ "PRAGMA log_queries = DEFAULT|", WRITE("log_queries", "DEFAULT") },
	{ "PRAGMA log_queries=-1|", WRITE("log_queries", "-1") },
	{ "PRAGMA log_queries = + 1|", WRITE("log_queries", "+1") },
	{ "PRAGMA query_profiler_cpu_time_period_ns = 1000000;|",
	  WRITE("query_profiler_cpu_time_period_ns", "1000000") },
	{ "PRAGMA query_profiler_cpu_time_period_ns = 1e6;|",
	  WRITE("query_profiler_cpu_time_period_ns", "1e6") },
	{ "PRAGMA query_profiler_cpu_time_period_ns = 1.5e+6;|",
	  WRITE("query_profiler_cpu_time_period_ns", "1.5e+6") },
	{ "PRAGMA query_profiler_cpu_time_period_ns = 10ms|",
	  WRITE("query_profiler_cpu_time_period_ns", "10ms") },
	{ "PRAGMA query_profiler_cpu_time_period_ns = .5|",
	  WRITE("query_profiler_cpu_time_period_ns", ".5") },
};

/* Left alone: other statements, and errors that SQLite itself shall report. */
static const char *const not_ours[] = {
	"",
	";",
	" ",
	"--",
	"/*",
	"/",
	"-",
	"p",
	"P",
	"PRAGM",
	"PRAGMA",
	"PRAGMA ",
	"PRAGMA ;",
	"SELECT 1",
	"SELECT 'PRAGMA query_id'",
	"pragmatic",
	"PRAGMAquery_id",
	"PRAGMA_query_id",
	"-- PRAGMA query_id",
	"/* PRAGMA query_id */",
	"EXPLAIN PRAGMA query_id",
	"SELECT 1; PRAGMA query_id",
	"PRAGMA journal_mode",
	"PRAGMA journal_mode = wal",
	"PRAGMA query_ids",
	"PRAGMA query_i",
	"PRAGMA main.query_id",
	"PRAGMA temp.query_id = 1",
	"PRAGMA system.journal_mode",
	"PRAGMA a.system.query_id",
	"PRAGMA query_id x",
	"PRAGMA query_id = ",
	"PRAGMA query_id = ;",
	"PRAGMA query_id = a b",
	"PRAGMA query_id = ?",
	"PRAGMA query_id = :x",
	"PRAGMA query_id == 1",
	"PRAGMA query_id = (1)",
	"PRAGMA query_id('x'",
	"PRAGMA query_id()",
	"PRAGMA query_id = 'open",
	"PRAGMA \"query_id",
	"PRAGMA query_id.x",
	"PRAGMA query_id = - ",
	"PRAGMA query_id = 1 + 1",
	"PRAGMA query_id 'x'",
	"PRAGMA .query_id",
	"PRAGMA system.",
};

static void check(const char *sql, int bytes, const char *becomes, const char *end)
{
	const char *tail = NULL;
	char *text = pragma_rewrite(sql, bytes, &tail);

	if (!text != !becomes || (text && (strcmp(text, becomes) || tail != end)))
		fail_msg("%s (bytes %d)\n  became   %s\n  expected %s\n  and ended at '%s', expected '%s'",
		         sql, bytes, text ? text : "NULL", becomes ? becomes : "NULL", text ? tail : "",
		         becomes ? end : "");
	free(text);
}

static void test_ours(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		const char *mark = strrchr(ours[i].sql, '|');
		size_t before = (size_t)(mark - ours[i].sql);
		char *sql = malloc(strlen(ours[i].sql) + 1), *cut;

		memcpy(sql, ours[i].sql, before);
		strcpy(sql + before, mark + 1);
		check(sql, -1, ours[i].becomes, sql + before);
		check(sql, (int)strlen(sql) + 1, ours[i].becomes, sql + before); /* with its zero */
		/* By its length, in memory that ends there, so that sanitizers detect a byte read past it. */
		cut = malloc(before ? before : 1);
		memcpy(cut, sql, before);
		check(cut, (int)before, ours[i].becomes, cut + before);
		free(cut);
		free(sql);
	}
}

static void test_not_ours(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(not_ours) / sizeof(*not_ours); i++) {
		size_t size = strlen(not_ours[i]);
		char *exact = malloc(size ? size : 1);

		check(not_ours[i], -1, NULL, NULL);
		memcpy(exact, not_ours[i], size);
		check(exact, (int)size, NULL, NULL);
		free(exact);
	}
}

/* Cuts a PRAGMA at every place, with a zero or by the length. No byte after it is read, and the result is a
 * whole statement or NULL. */
static void test_every_beginning(void **state)
{
	static const char whole[] = " /* x */ PRAGMA system . \"query_id\" = 'it''s' -- end\n ; SELECT 1";

	(void)state;
	for (size_t size = 0; size <= strlen(whole); size++) {
		char *cut = malloc(size + 1);
		const char *tail = NULL;
		char *text;

		memcpy(cut, whole, size);
		cut[size] = 0;
		text = pragma_rewrite(cut, -1, &tail);
		if (text)
			assert_true(tail > cut && tail <= cut + size);
		free(text);
		cut = realloc(cut, size ? size : 1);
		text = pragma_rewrite(cut, (int)size, &tail);
		if (text)
			assert_true(tail > cut && tail <= cut + size);
		free(text);
		free(cut);
	}
}

static void test_long_value(void **state)
{
	static const char start[] = "PRAGMA trace_log_path = '";
	size_t size = 100000;
	char *sql = malloc(size + 64), *text;
	const char *tail;

	(void)state;
	strcpy(sql, start);
	memset(sql + strlen(start), '\'', size); /* pairs of quotes, each one in the value */
	strcpy(sql + strlen(start) + size, "'");
	text = pragma_rewrite(sql, -1, &tail);
	assert_non_null(text);
	assert_int_equal(strlen(text),
	                 strlen("SELECT set_setting('trace_log_path','') AS \"trace_log_path\"") + size);
	free(text);
	free(sql);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_every_beginning),
		cmocka_unit_test(test_long_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
