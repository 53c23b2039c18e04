/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/opcode_trials.h"

#include <stddef.h>

const struct trial opcode_trials[] = {
	{ TRIAL_MAIN, "Function PureFunc Function0", "SELECT qp_at(a) FROM t LIMIT 3" },
	{ TRIAL_MAIN, "Function PureFunc Function0", "SELECT 1, 2, 3, 4, 5, qp_at(5)" },
	{ TRIAL_MAIN, "Function PureFunc Function0",
	  "SELECT a, c FROM t WHERE c > 1 AND c <> 4 AND qp_at(a, c)" },
	{ TRIAL_MAIN, "Function PureFunc Function0",
	  "SELECT a FROM t AS x WHERE EXISTS (SELECT 1 FROM t AS y WHERE y.c = x.c AND qp_at(y.a)) LIMIT 2" },
	{ TRIAL_MAIN, "Function PureFunc Function0",
	  "SELECT count(*), sum(a) FROM t GROUP BY qp_at(c) ORDER BY 2" },
	{ TRIAL_MAIN, "AggStep AggStep0 AggStep1", "SELECT qp_all(a, c) FROM t" },
	{ TRIAL_MAIN, "AggStep AggStep0 AggStep1", "SELECT c, qp_all(a) FROM t GROUP BY c" },
	{ TRIAL_MAIN, "Eq Ne", "SELECT a FROM t WHERE +b = 'x'" },
	{ TRIAL_MAIN, "Lt Le Gt Ge", "SELECT a, c FROM t WHERE +b > 'x'" },
	{ TRIAL_MAIN, "SorterSort", "SELECT c FROM t ORDER BY b" },
	{ TRIAL_MAIN, "SeekGE", "SELECT a FROM t INDEXED BY tb WHERE b >= 'b'" },
	{ TRIAL_MAIN, "SeekLE", "SELECT a FROM t INDEXED BY tb WHERE b <= 'c' ORDER BY b DESC" },
	{ TRIAL_MAIN, "Compare", "SELECT b, count(*) FROM t INDEXED BY tb GROUP BY b" },
	{ TRIAL_MAIN, "IdxInsert", "INSERT INTO t (b, c) VALUES ('bb', 7)" },
	{ TRIAL_TRIGGER, "Program", "INSERT INTO u VALUES (1)" },
	{ TRIAL_TRIGGER, "Program", "INSERT INTO u SELECT a FROM t LIMIT 2" },
	{ TRIAL_NESTED, "Program", "INSERT INTO v VALUES (1)" },
	{ TRIAL_NESTED, "Program", "INSERT INTO v SELECT a FROM t LIMIT 2" },
	{ .sql = NULL },
};

/* Only the layouts are of interest: whatever uses many opcodes. */
const char *const opcode_names_sql[] = {
	"SELECT max(a), min(b), total(c) FROM t WHERE a IN (1, 2) OR b IN (SELECT c FROM u JOIN t USING (a))",
	"SELECT * FROM t LEFT JOIN u ON u.a = t.c WHERE t.b IS NULL OR u.a IS NOT NULL LIMIT 2 OFFSET 1",
	"SELECT b FROM t UNION SELECT c FROM t ORDER BY 1 DESC",
	"SELECT b FROM t UNION ALL SELECT c FROM t EXCEPT SELECT 1",
	"SELECT b FROM t INTERSECT SELECT c FROM t",
	"WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x + 1 FROM r WHERE x < 9) SELECT * FROM r JOIN t ON a "
	"= x",
	"SELECT DISTINCT c, b FROM t WHERE a > 1 AND a <= 7 ORDER BY a DESC",
	"SELECT (SELECT max(y.a) FROM t AS y WHERE y.c = x.c) FROM t AS x WHERE EXISTS (SELECT 1 FROM u "
	"WHERE a = x.a)",
	"SELECT count(DISTINCT c), group_concat(b, '|') FROM t GROUP BY c % 3 HAVING count(*) > 1",
	"SELECT a, sum(c) OVER (PARTITION BY b ORDER BY a ROWS 1 PRECEDING), row_number() OVER () FROM t",
	"SELECT CASE WHEN a > 1 THEN -a ELSE a / 2 * 3 - 1 END, b || 'x', CAST(c AS TEXT), a & 1, a | 2, a "
	"<< 1, "
	"a >> 1, ~a, NOT a, 1.5, x'00', NULL, a BETWEEN 1 AND 3, b LIKE 'a%', ?1, 9999999999 FROM t",
	"SELECT * FROM t AS x, t AS y WHERE x.c = y.c AND x.a < y.a",
	"SELECT count(*) FROM t",
	"SELECT a FROM t WHERE a < 5 AND b >= 'a' AND b < 'c' ORDER BY b, c",
	"SELECT a FROM t WHERE rowid >= 3 ORDER BY rowid DESC LIMIT 1",
	"SELECT * FROM w WHERE y = 3 AND x > 1",
	"SELECT value FROM json_each('[1]') WHERE value > 0",
	"SELECT DISTINCT name FROM pragma_table_info('t')",
	"VALUES (1, 2), (3, 4)",
	"INSERT INTO t (b, c) VALUES ('q', 1) ON CONFLICT (a) DO UPDATE SET c = c + 1 RETURNING a",
	"INSERT OR REPLACE INTO w VALUES (1, 2, 3)",
	"INSERT OR IGNORE INTO w SELECT a, c, b FROM t",
	"UPDATE t SET b = b || 'x', a = a + 1 WHERE c = 3 OR a = 9",
	"UPDATE w SET y = y + 1, x = x + 1 WHERE z IN (SELECT b FROM t)",
	"UPDATE OR REPLACE f SET p = 2 WHERE p = 1",
	"DELETE FROM t WHERE b = 'x'",
	"DELETE FROM t",
	"DELETE FROM w WHERE x = 1",
	"DELETE FROM p WHERE k > 1",
	"INSERT INTO f VALUES (1)",
	"CREATE INDEX tc ON t (c)",
	"CREATE TABLE n AS SELECT * FROM t",
	"CREATE VIEW m AS SELECT 1",
	"ALTER TABLE t ADD COLUMN d DEFAULT 1",
	"DROP TABLE u",
	"BEGIN IMMEDIATE",
	"SAVEPOINT s",
	"PRAGMA integrity_check",
	"PRAGMA user_version = 1",
	"PRAGMA journal_mode",
	"ANALYZE",
	"REINDEX",
	"VACUUM",
	NULL,
};

const char opcode_schema[] =
	"CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT COLLATE qp_order, c);"
	"CREATE INDEX tb ON t (b);"
	"CREATE TABLE u (a); CREATE TABLE v (a);"
	"CREATE TABLE w (x, y, z, PRIMARY KEY (x, y)) WITHOUT ROWID; CREATE INDEX wy ON w (y);"
	"CREATE TABLE p (k INTEGER PRIMARY KEY); CREATE TABLE f (p REFERENCES p ON DELETE CASCADE);"
	"CREATE TRIGGER ut AFTER INSERT ON u BEGIN SELECT qp_at(new.a); END;"
	"CREATE TRIGGER vt AFTER INSERT ON v BEGIN INSERT INTO u VALUES (new.a); END;"
	"PRAGMA foreign_keys = 1;"
	"INSERT INTO t (b, c) VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 3), ('e', 5), ('aa', 2);";
