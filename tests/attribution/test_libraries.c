/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that is inside two SQLite libraries of one process: the program's own library, and a library that
 * it looks up by name or that a plugin is linked with.
 */
#include "../host/host.h"
#include "../lib/ticks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURN                                                                                                 \
	"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT /* %s */ "      \
	"sum(x) FROM c"

/* The functions of the other library. */
static struct other {
	int (*open)(const char *, sqlite3 **);
	int (*close)(sqlite3 *);
	int (*enable)(sqlite3 *, int);
	int (*load)(sqlite3 *, const char *, const char *, char **);
	int (*prepare)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
	int (*step)(sqlite3_stmt *);
	int (*finalize)(sqlite3_stmt *);
	int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
	sqlite3_int64 (*column)(sqlite3_stmt *, int);
	int (*function)(sqlite3 *, const char *, int, int, void *,
	                void (*)(sqlite3_context *, int, sqlite3_value **),
	                void (*)(sqlite3_context *, int, sqlite3_value **), void (*)(sqlite3_context *));
	void (*result)(sqlite3_context *, int);
} other;

static void look_up(void *handle)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "sqlite3_open", &other.open },
		{ "sqlite3_close", &other.close },
		{ "sqlite3_enable_load_extension", &other.enable },
		{ "sqlite3_load_extension", &other.load },
		{ "sqlite3_prepare_v2", &other.prepare },
		{ "sqlite3_step", &other.step },
		{ "sqlite3_finalize", &other.finalize },
		{ "sqlite3_exec", &other.exec },
		{ "sqlite3_column_int64", &other.column },
		{ "sqlite3_create_function", &other.function },
		{ "sqlite3_result_int", &other.result },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(handle, functions[i].name);

		assert_non_null(found);
		memcpy(functions[i].to, &found, sizeof(found));
	}
}

static int64_t ask_other(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t number;

	assert_int_equal(other.prepare(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(other.step(stmt), SQLITE_ROW);
	number = other.column(stmt, 0);
	assert_int_equal(other.step(stmt), SQLITE_DONE);
	other.finalize(stmt);
	return number;
}

static char *copy_of_library(void)
{
	Dl_info info;
	char *path = malloc(256), *command = malloc(1024);

	assert_int_not_equal(dladdr((void *)sqlite3_libversion, &info), 0);
	/* The address may be a stub in the program. */
	info.dli_fname = NULL;
	assert_int_not_equal(
		dladdr(dlsym(dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD), "sqlite3_step"), &info), 0);
	snprintf(path, 256, "%s/libanother.so", host_directory());
	snprintf(command, 1024, "cp -L '%s' '%s'", info.dli_fname, path);
	assert_int_equal(system(command), 0);
	free(command);
	return path;
}

static sqlite3 *outer; /* of the program's library */
static sqlite3 *inner; /* of the other library */

/* A function of one library that runs SQL in the other library. */
static void run_in_other(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	sqlite3_result_int64(context,
	                     ask_other(inner, "SELECT run_in_first() + length(get_setting('log_queries'))"));
}

static void run_in_first(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	other.result(context, (int)host_int(outer, BURN " WHERE x > length(get_setting('log_queries'))",
	                                    500000, "first") > 0);
}

#define OF_MARK " FROM system.query_log WHERE query LIKE '%%/* %s */%%'"
#define CPU_OF_MARK "SELECT sum(cpu_time_ns)" OF_MARK
#define TURNS_OF_MARK                                                                                        \
	"SELECT sum(voluntary_switches + involuntary_switches + 2)" OF_MARK /* their last ticks */

static void expect_library(const char *mark, const char *path)
{
	char *seen =
		host_text(outer,
	                  "SELECT group_concat(DISTINCT library_path) FROM system.query_log WHERE query LIKE "
	                  "'%%/* %s */%%' AND library_version = sqlite_version()",
	                  mark);

	printf("%s: %s\n", mark, seen);
	assert_non_null(seen);
	assert_non_null(strstr(seen, path));
	assert_null(strchr(seen, ','));
	free(seen);
	assert_true((double)host_int(outer,
	                             "SELECT count(*) FROM system.trace_log WHERE query_id IN (SELECT "
	                             "query_id" OF_MARK ")",
	                             mark) >= least_samples(host_double(outer, CPU_OF_MARK, mark),
	                                                    host_double(outer, TURNS_OF_MARK, mark)));
}

/* A private copy whose functions are looked up by name, so all of it can be hooked. */
static void test_looked_up(void **state)
{
	char *path = copy_of_library(), *sql;
	void *handle;

	(void)state;
	outer = host_open(":memory:");
	host_exec(outer, "PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!handle)
		fail_msg("%s", dlerror());
	look_up(handle);
	assert_true((void *)other.open != (void *)sqlite3_open);
	assert_int_equal(other.open(":memory:", &inner), SQLITE_OK);
	other.enable(inner, 1);
	assert_int_equal(other.load(inner, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", NULL), SQLITE_OK);
	/* Functions that were found before they were hooked are the original ones. */
	look_up(handle);
	assert_int_equal(
		other.exec(inner, "PRAGMA query_profiler_cpu_time_period_ns = 1000000", NULL, NULL, NULL),
		SQLITE_OK);

	sql = sqlite3_mprintf(BURN, 1000000, "in the copy");
	ask_other(inner, sql);
	sqlite3_free(sql);
	sql = sqlite3_mprintf(BURN, 1000000, "exec in the copy");
	assert_int_equal(other.exec(inner, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_free(sql);
	host_exec(outer, BURN, 1000000, "in the first");
	/* queryprof's tables and functions work in both libraries, also nested. */
	assert_true((double)ask_other(inner,
	                              "SELECT count(*) FROM trace_log WHERE query_id IN (SELECT query_id "
	                              "FROM query_log WHERE query LIKE '%/* in the copy */%') AND "
	                              "traceToText(trace) <> ''") >=
	            least_samples(host_double(outer, CPU_OF_MARK, "in the copy"),
	                          host_double(outer, TURNS_OF_MARK, "in the copy")));
	sqlite3_create_function(outer, "run_in_other", 0, SQLITE_UTF8, NULL, run_in_other, NULL, NULL);
	other.function(inner, "run_in_first", 0, SQLITE_UTF8, NULL, run_in_first, NULL, NULL);
	assert_int_equal(
		host_int(outer, "SELECT /* both */ run_in_other() + length(get_setting('log_queries'))"), 3);
	host_quiet(outer);
	expect_library("in the copy", path);
	expect_library("exec in the copy", path);
	expect_library("in the first", "libsqlite3.so");
	assert_int_equal(other.close(inner), SQLITE_OK);
	assert_int_equal(host_metric(outer, "sessions"), 1);
	host_close(outer);
	free(path);
}

/* As in many libraries, this library's own calls use no table. The trace callback reports its statements, for
 * connections that load the extension. */
static void test_plugin(void **state)
{
	int (*open)(const char *, sqlite3 **);
	int (*load)(sqlite3 *, const char *);
	int (*close)(sqlite3 *);
	long long (*ask)(sqlite3 *, const char *);
	void *handle = dlopen(PLUGIN, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
	sqlite3 *db;
	char *sql;

	(void)state;
	if (!handle)
		fail_msg("%s", dlerror());
	*(void **)&open = dlsym(handle, "plugin_open");
	*(void **)&load = dlsym(handle, "plugin_load");
	*(void **)&close = dlsym(handle, "plugin_close");
	*(void **)&ask = dlsym(handle, "plugin_ask");
	outer = host_open(":memory:");
	host_exec(outer, "PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	assert_int_equal(open(":memory:", &db), SQLITE_OK);
	assert_int_equal(load(db, QUERYPROF_LIBRARY), SQLITE_OK);
	assert_int_equal(ask(db, "SELECT set_setting('query_profiler_cpu_time_period_ns', '1000000')"),
	                 1000000);
	for (int i = 0; i < 3; i++) {
		sql = sqlite3_mprintf(BURN, 500000, "in the plugin");
		assert_true(ask(db, sql) > 0);
		sqlite3_free(sql);
		host_exec(outer, BURN, 500000, "beside it");
		assert_true(
			ask(db,
		            "SELECT count(*) + length(get_setting('log_queries')) FROM system.trace_log") >
			0);
	}
	host_quiet(outer);
	expect_library("in the plugin", "libother_sqlite.so");
	expect_library("beside it", "libsqlite3.so");
	assert_int_equal(close(db), SQLITE_OK);
	host_close(outer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looked_up),
		cmocka_unit_test(test_plugin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
