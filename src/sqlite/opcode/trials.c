/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/trials.h"

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

const char opcode_schema[] =
	"CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT COLLATE qp_order, c);"
	"CREATE INDEX tb ON t (b);"
	"CREATE TABLE u (a); CREATE TABLE v (a);"
	"CREATE TRIGGER ut AFTER INSERT ON u BEGIN SELECT qp_at(new.a); END;"
	"CREATE TRIGGER vt AFTER INSERT ON v BEGIN INSERT INTO u VALUES (new.a); END;"
	"INSERT INTO t (b, c) VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 3), ('e', 5), ('aa', 2);";
