/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs 20,000 short SELECTs, and as many that do nothing, tries 50 INSERTs that
 * fail, and prints in ns: how long the SELECTs took by its own clock, their CPU time, and the
 * CPU time of those that do nothing; last, the context switches among the first.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "../lib/clock.h"

#define RUNS 20000
#define FAILURES 50

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void check(sqlite3 *db, int is_right)
{
	if (is_right)
		return;
	fprintf(stderr, "%s\n", sqlite3_errmsg(db));
	exit(1);
}

/* The time inside SQLite: a clock around each run would take longer than some runs. */
static void select_rows(sqlite3 *db, const char *sql, long long *wall, long long *cpu, long *switched)
{
	sqlite3_stmt *stmt;

	check(db, !sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
	*switched = switches();
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
	*switched = switches() - *switched;
	sqlite3_finalize(stmt);
}

int main(void)
{
	long long wall, cpu, nothing_wall, nothing_cpu;
	long switched, nothing_switched;
	sqlite3 *db;
	char sql[80];

	check(NULL, !sqlite3_open(":memory:", &db));
	check(db,
	      !sqlite3_exec(db,
	                    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
	                    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)"
	                    " INSERT INTO t SELECT i, 'row ' || i FROM c",
	                    NULL, NULL, NULL));
	select_rows(db, "SELECT count(*), max(b) FROM t WHERE a BETWEEN ?1 AND ?1 + 60", &wall, &cpu,
	            &switched);
	select_rows(db, "SELECT ?1", &nothing_wall, &nothing_cpu, &nothing_switched);
	printf("%lld %lld %lld %ld\n", wall, cpu, nothing_cpu, switched);
	for (int i = 0; i < FAILURES; i++) {
		snprintf(sql, sizeof(sql), "INSERT INTO t VALUES (%d, NULL)", i + 1);
		check(db, sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_CONSTRAINT);
	}
	sqlite3_close(db);
	return 0;
}
