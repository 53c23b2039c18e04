/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *library;

void check(int holds, const char *file, int line, const char *text)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
	_exit(99);
}

const char *library_path(void)
{
	return library;
}

void load_library(sqlite3 *db)
{
	char *error = NULL;

	if (!library)
		return;
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, library, "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		_exit(98);
	}
}

sqlite3 *open_db(void)
{
	sqlite3 *db;

	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	load_library(db);
	return db;
}

long long ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	long long value = 0;
	int rc;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
	CHECK(stmt != NULL);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	while (rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_DONE)
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
	CHECK(rc == SQLITE_DONE);
	sqlite3_finalize(stmt);
	return value;
}

void use_cpu(sqlite3 *db, int ms)
{
	struct timespec now;
	long long start = -1, ns;

	do {
		CHECK(ask(db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) "
		          "SELECT sum(x) FROM c") == 200010000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		ns = now.tv_sec * 1000000000ll + now.tv_nsec;
		if (start < 0)
			start = ns;
	} while (ns - start < ms * 1000000ll);
}

void burn(sqlite3 *db, int ms)
{
	use_cpu(db, library || getenv("LD_PRELOAD") ? ms : 0);
}

/* Returns the number of stored samples, or 0 if the file does not exist yet. */
static int count_stored(const char *path)
{
	sqlite3 *trace = NULL;
	sqlite3_stmt *stmt = NULL;
	int count = 0;

	if (!sqlite3_open_v2(path, &trace, SQLITE_OPEN_READONLY, NULL) &&
	    !sqlite3_prepare_v2(trace, "SELECT count(*) FROM trace_log", -1, &stmt, NULL) &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		count = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(trace);
	return count;
}

void burn_until_stored(sqlite3 *db, int samples)
{
	const char *path = getenv("QUERYPROF_TRACE_LOG_PATH");

	while (path && count_stored(path) < samples)
		burn(db, 50);
}

static void call_function(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int (*call)(void);

	(void)argc, (void)argv;
	*(void **)&call = sqlite3_user_data(context);
	sqlite3_result_int(context, call());
}

void add_function(sqlite3 *db, const char *name, int (*call)(void))
{
	CHECK(sqlite3_create_function(db, name, 0, SQLITE_UTF8, *(void **)&call, call_function, NULL, NULL) ==
	      SQLITE_OK);
}

long long metric(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf("SELECT value FROM system.metrics WHERE metric = %Q", name);
	long long value = library ? ask(db, sql) : 0;

	sqlite3_free(sql);
	return value;
}

static int print_metric(void *context, int count, char **values, char **names)
{
	(void)context, (void)count, (void)names;
	fprintf(stderr, "metric %s %s\n", values[0], values[1] ? values[1] : "");
	return 0;
}

void tell_metrics(sqlite3 *db)
{
	char *error = NULL;

	if (!library)
		return;
	CHECK(sqlite3_exec(db,
	                   "PRAGMA query_profiler_cpu_time_period_ns = 0; PRAGMA "
	                   "query_profiler_real_time_period_ns = 0",
	                   NULL, NULL, NULL) == SQLITE_OK);
	/* First everything is stored or counted as lost. The query fails if the file cannot be read. */
	if (sqlite3_exec(db, "SELECT count(*) FROM trace_log", NULL, NULL, &error))
		fprintf(stderr, "reading: %s\n", error);
	sqlite3_free(error);
	CHECK(sqlite3_exec(db, "SELECT metric, value FROM system.metrics", print_metric, NULL, NULL) ==
	      SQLITE_OK);
}

int main(int argc, char **argv)
{
	library = argc > 2 ? argv[2] : NULL;
	for (const struct scenario *scenario = scenarios; argc > 1 && scenario->name; scenario++) {
		if (!strcmp(scenario->name, argv[1])) {
			scenario->run();
			return 0;
		}
	}
	return 97;
}
