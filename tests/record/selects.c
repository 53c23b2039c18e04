/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs 20,000 short SELECTs, then 20,000 that do nothing, then tries 50 INSERTs that fail. It
 * prints in ns: the wall time of the SELECTs by its own clock, their CPU time, the CPU time from the
 * beginning to the end of each, and the CPU time of the SELECTs that do nothing.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../lib/clock.h"

#define RUNS 20000
#define FAILURES 50

static long long first_ns, within_ns;

/* read_clock(0) at the beginning of a run, and read_clock(1) at its end. */
static void read_clock(sqlite3_context *context, int count, sqlite3_value **values)
{
	long long now = (long long)clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	(void)count;
	if (!sqlite3_value_int(values[0]))
		first_ns = now;
	else
		within_ns += now - first_ns;
	sqlite3_result_int(context, 0);
}

static void check(sqlite3 *db, int is_right)
{
	if (is_right)
		return;
	fprintf(stderr, "%s\n", sqlite3_errmsg(db));
	exit(1);
}

/* Measures all runs together, because a clock around each run would take longer than some runs. */
static void select_rows(sqlite3 *db, const char *sql, long long *wall, long long *cpu)
{
	sqlite3_stmt *stmt;

	check(db, !sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
	*cpu = (long long)clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	*wall = (long long)clock_read_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < RUNS; i++) {
		sqlite3_bind_int(stmt, 1, i % 900);
		check(db, sqlite3_step(stmt) == SQLITE_ROW);
		check(db, sqlite3_step(stmt) == SQLITE_DONE);
		sqlite3_reset(stmt);
	}
	*wall = (long long)clock_read_ns(CLOCK_MONOTONIC) - *wall;
	*cpu = (long long)clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - *cpu;
	sqlite3_finalize(stmt);
}

int main(void)
{
	long long wall, cpu, nothing_wall, nothing_cpu;
	sqlite3 *db;
	char sql[80];

	check(NULL, !sqlite3_open(":memory:", &db));
	check(db,
	      !sqlite3_exec(db,
	                    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
	                    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)"
	                    " INSERT INTO t SELECT i, 'row ' || i FROM c",
	                    NULL, NULL, NULL));
	sqlite3_create_function(db, "read_clock", 1, SQLITE_UTF8, NULL, read_clock, NULL, NULL);
	select_rows(db,
	            "SELECT read_clock(0), (SELECT max(b) || count(*) FROM t WHERE a BETWEEN ?1 AND ?1 + 60),"
	            " read_clock(1)",
	            &wall, &cpu);
	select_rows(db, "SELECT ?1", &nothing_wall, &nothing_cpu);
	printf("%lld %lld %lld %lld\n", wall, cpu, within_ns, nothing_cpu);
	for (int i = 0; i < FAILURES; i++) {
		snprintf(sql, sizeof(sql), "INSERT INTO t VALUES (%d, NULL)", i + 1);
		check(db, sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_CONSTRAINT);
	}
	sqlite3_close(db);
	return 0;
}
