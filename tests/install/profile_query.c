/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's program that is built with the installed files alone. It profiles its query, and reads with SQL
 * where the time went.
 */
#include <queryprof.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail(sql, error);
}

static sqlite3_int64 read_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;
	sqlite3_int64 number;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		fail(sql, sqlite3_errmsg(db));
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

int main(void)
{
	sqlite3 *db;
	sqlite3_int64 queries, samples, weighted_ms, cpu_ms, named;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		fail("open", sqlite3_errmsg(db));
	if (qp_attach(db) != QP_OK)
		fail("qp_attach", qp_error());
	if (qp_set(db, "query_profiler_cpu_time_period_ns", "1000000") != QP_OK)
		fail("qp_set", qp_error());

	run(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)"
	        " SELECT sum(i % 7) /* the query */ FROM n");

	if (qp_set(db, "query_profiler_cpu_time_period_ns", "0") != QP_OK)
		fail("qp_set", qp_error());
#define OF_THE_QUERY                                                                                         \
	" WHERE query_id = (SELECT query_id FROM system.query_log WHERE query LIKE '%/* the query */ FROM "  \
	"n')"
	queries = read_number(db, "SELECT count(*) FROM system.query_log" OF_THE_QUERY);
	cpu_ms = read_number(db, "SELECT cpu_time_ns / 1000000 FROM system.query_log" OF_THE_QUERY);
	samples = read_number(db, "SELECT count(*) FROM system.trace_log" OF_THE_QUERY);
	weighted_ms = read_number(
		db, "SELECT sum(weight * period_ns) / 1000000 FROM system.trace_log" OF_THE_QUERY);
	named = read_number(db, "SELECT count(*) FROM system.trace_log" OF_THE_QUERY
	                        " AND traceToText(trace) LIKE '%sqlite3_step%main%'");
	printf("queries %lld, cpu %lld ms, samples %lld standing for %lld ms, %lld from main to "
	       "sqlite3_step\n",
	       queries, cpu_ms, samples, weighted_ms, named);
	/* A factor of two suffices, because this tests the installation; tests/accuracy tests the values. */
	if (queries != 1 || samples == 0 || weighted_ms < cpu_ms / 2 || weighted_ms > cpu_ms * 2 ||
	    named * 2 < samples)
		fail("profile", "not what the query's CPU time says");

	sqlite3_close(db);
	if (qp_shutdown() != QP_OK)
		fail("qp_shutdown", qp_error());
	return 0;
}
