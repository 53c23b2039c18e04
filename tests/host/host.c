/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

sqlite3 *host_open(const char *path)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	host_load(db);
	return db;
}

void host_load(sqlite3 *db)
{
	char *error = NULL;
	int rc;

	/* The tests' limits assume the requested periods. On a busy machine a period of 1 ms would exceed
	 * the budget, whose longer intervals scatter the sums more. */
	setenv("QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT", "0", 0);
	assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL), SQLITE_OK);
	rc = sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error);
	if (rc)
		fail_msg("load_extension(%s): %d %s", QUERYPROF_LIBRARY, rc, error ? error : "");
}

void host_close(sqlite3 *db)
{
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

void host_exec(sqlite3 *db, const char *format, ...)
{
	va_list arguments;
	char *sql, *error = NULL;

	va_start(arguments, format);
	sql = sqlite3_vmprintf(format, arguments);
	va_end(arguments);
	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
	sqlite3_free(sql);
}

void host_quiet(sqlite3 *db)
{
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 0; PRAGMA "
	              "query_profiler_real_time_period_ns = 0");
}

static sqlite3_stmt *first_row(sqlite3 *db, const char *format, va_list arguments)
{
	char *sql = sqlite3_vmprintf(format, arguments);
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (!rc)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (rc == SQLITE_DONE) {
		sqlite3_finalize(stmt);
		stmt = NULL;
	}
	sqlite3_free(sql);
	return stmt;
}

#define ROW(stmt, format)                                                                                    \
	sqlite3_stmt *stmt;                                                                                  \
	va_list arguments;                                                                                   \
	va_start(arguments, format);                                                                         \
	stmt = first_row(db, format, arguments);                                                             \
	va_end(arguments)

int64_t host_int(sqlite3 *db, const char *format, ...)
{
	int64_t value;
	ROW(stmt, format);

	if (!stmt)
		fail_msg("no row: %s", format);
	value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

double host_double(sqlite3 *db, const char *format, ...)
{
	double value;
	ROW(stmt, format);

	if (!stmt)
		fail_msg("no row: %s", format);
	value = sqlite3_column_double(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

char *host_text(sqlite3 *db, const char *format, ...)
{
	char *value = NULL;
	ROW(stmt, format);

	if (stmt && sqlite3_column_text(stmt, 0))
		value = strdup((const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	return value;
}

static char directory[] = "/tmp/queryprof-test-XXXXXX";
static pid_t owner;

static void remove_directory(void)
{
	char command[128];

	if (getpid() != owner)
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	if (system(command))
		fprintf(stderr, "%s stays behind\n", directory);
}

const char *host_directory(void)
{
	if (!owner) {
		assert_non_null(mkdtemp(directory));
		owner = getpid();
		atexit(remove_directory);
	}
	return directory;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t host_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t host_thread_cpu(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

char *host_burn_sql(double millions, const char *mark)
{
	return sqlite3_mprintf(
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %lld) "
		"SELECT /* %s */ sum(x * 7 %% 13) FROM c",
		(long long)(millions * 1e6), mark);
}

uint64_t host_burn(sqlite3 *db, uint64_t ns, const char *mark)
{
	char *sql = host_burn_sql(0.3, mark);
	uint64_t start = host_thread_cpu(), inside = 0;

	while (host_thread_cpu() - start < ns) {
		sqlite3_stmt *stmt;
		uint64_t before;

		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
		before = host_thread_cpu();
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
		inside += host_thread_cpu() - before;
		sqlite3_finalize(stmt);
	}
	sqlite3_free(sql);
	return inside;
}

int64_t host_sampled_ns(sqlite3 *db, const char *where)
{
	return host_int(db, "SELECT coalesce(sum(weight * period_ns), 0) FROM system.trace_log WHERE %s",
	                where);
}

int64_t host_metric(sqlite3 *db, const char *name)
{
	return host_int(db, "SELECT value FROM system.metrics WHERE metric = '%s'", name);
}
