/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs 20,000 short SELECTs, tries 50 INSERTs that fail, and prints how long the
 * SELECTs took by its own clock, in ns.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RUNS 20000
#define FAILURES 50

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void check(sqlite3 *db, int is_right)
{
	if (is_right)
		return;
	fprintf(stderr, "%s\n", sqlite3_errmsg(db));
	exit(1);
}

/* The time inside SQLite: a clock around each run would take longer than some runs. */
static long long select_rows(sqlite3 *db)
{
	sqlite3_stmt *stmt;
	long long start;

	check(db, !sqlite3_prepare_v2(db, "SELECT count(*), max(b) FROM t WHERE a BETWEEN ?1 AND ?1 + 60", -1,
	                              &stmt, NULL));
	start = now_ns();
	for (int i = 0; i < RUNS; i++) {
		sqlite3_bind_int(stmt, 1, i % 900);
		check(db, sqlite3_step(stmt) == SQLITE_ROW);
		check(db, sqlite3_step(stmt) == SQLITE_DONE);
		sqlite3_reset(stmt);
	}
	start = now_ns() - start;
	sqlite3_finalize(stmt);
	return start;
}

int main(void)
{
	sqlite3 *db;
	char sql[80];

	check(NULL, !sqlite3_open(":memory:", &db));
	check(db,
	      !sqlite3_exec(db,
	                    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
	                    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)"
	                    " INSERT INTO t SELECT i, 'row ' || i FROM c",
	                    NULL, NULL, NULL));
	printf("%lld\n", select_rows(db));
	for (int i = 0; i < FAILURES; i++) {
		snprintf(sql, sizeof sql, "INSERT INTO t VALUES (%d, NULL)", i + 1);
		check(db, sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_CONSTRAINT);
	}
	sqlite3_close(db);
	return 0;
}
