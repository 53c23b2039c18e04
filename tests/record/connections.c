/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up rows of a file of 2,000 pages with a page cache of PAGES pages, for more than a second:
 * connections FILE PAGES
 *
 * Prints sqlite3_db_status()'s counters of the page cache before it closes the connection: hits, misses,
 * writes, spills. In the middle it resets the hits, and adds both parts up.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/clock.h"
#include "../lib/must.h"

static int status(sqlite3 *db, int what, int reset)
{
	int now = 0, most;

	if (sqlite3_db_status(db, what, &now, &most, reset))
		exit(1);
	return now;
}

static void look_up(sqlite3 *db, int seconds)
{
	const uint64_t end = now_ns() + (uint64_t)seconds * 1100000000u;
	sqlite3_stmt *stmt;

	must(db,
	     sqlite3_prepare_v2(db, "SELECT sum(length(x)) FROM t WHERE id BETWEEN ?1 AND ?1 + 400", -1,
	                        &stmt, NULL),
	     "prepare");
	for (int i = 0; now_ns() < end; i++) {
		sqlite3_bind_int(stmt, 1, i * 7919 % 1600);
		sqlite3_step(stmt);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
}

int main(int argc, char **argv)
{
	char text[100];
	long hits;
	sqlite3 *db;

	if (argc < 3 || sqlite3_open(argv[1], &db))
		return 1;
	snprintf(text, sizeof(text), "PRAGMA cache_size = %d", atoi(argv[2]));
	must(db, sqlite3_exec(db, text, NULL, NULL, NULL), "cache_size");
	must(db,
	     sqlite3_exec(db,
	                  "CREATE TABLE t (id INTEGER PRIMARY KEY, x);"
	                  "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
	                  " INSERT INTO t SELECT i, zeroblob(3900) FROM n",
	                  NULL, NULL, NULL),
	     "fill");
	look_up(db, 1);
	hits = status(db, SQLITE_DBSTATUS_CACHE_HIT, 1);
	look_up(db, 1);
	printf("%ld %d %d %d\n", hits + status(db, SQLITE_DBSTATUS_CACHE_HIT, 0),
	       status(db, SQLITE_DBSTATUS_CACHE_MISS, 0), status(db, SQLITE_DBSTATUS_CACHE_WRITE, 0),
	       status(db, SQLITE_DBSTATUS_CACHE_SPILL, 0));
	return sqlite3_close(db) != SQLITE_OK;
}
