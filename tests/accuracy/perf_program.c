/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test_perf.py: a program with SQLite inside, whose functions have names. For the given seconds of CPU
 * time it only runs queries of several kinds.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const statements[] = {
	"SELECT count(*) FROM t WHERE b LIKE '%7%3%'",
	"SELECT a, b FROM t ORDER BY b, a DESC",
	"SELECT c, sum(a), max(b) FROM t GROUP BY c",
	"SELECT sum(length(printf('%08d %s', a, b))) FROM t",
	"SELECT count(*) FROM t AS x JOIN t AS y ON x.a = y.b",
	"UPDATE t SET c = c * 7 % 101 WHERE a % 3 = 0",
	"SELECT sum(json_extract('{\"a\":[1,2,{\"b\":' || a || '}]}', '$.a[2].b')) FROM t",
};

int main(int argc, char **argv)
{
	clock_t most = (argc > 1 ? atoi(argv[1]) : 5) * CLOCKS_PER_SEC;
	sqlite3_stmt *stmt;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_exec(db,
	                 "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INT);"
	                 "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) "
	                 "INSERT INTO t SELECT x, x * 7919 % 100003 || ' text', x % 101 FROM n;"
	                 "CREATE INDEX i ON t(b)",
	                 NULL, NULL, NULL))
		return 1;
	while (clock() < most) {
		for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++) {
			if (sqlite3_prepare_v2(db, statements[i], -1, &stmt, NULL))
				return 1;
			while (sqlite3_step(stmt) == SQLITE_ROW)
				;
			if (sqlite3_finalize(stmt))
				return 1;
		}
	}
	return sqlite3_close(db);
}
