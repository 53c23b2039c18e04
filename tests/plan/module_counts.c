/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host whose module of virtual tables counts its loops and rows. It prints them for each statement, by the
 * number that xBestIndex returned, which the plan shows. With and without queryprof it must print the same.
 *
 *   plan_module_counts
 */
#include <stdint.h>
#include <string.h>

#include "../lib/must.h"
#include "../lib/spin.h"

#define NUMBERS 100000
#define RANDOM_STATEMENTS 30
#define SPIN_NS 40000000 /* several ticks: each statement has a sample */

static uint64_t state = 20261130;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* --- the module ---------------------------------------------------------------------------------- */

/* Of the statement that runs. */
static struct {
	int loops, rows;
} truth[NUMBERS];
static int newest = 100;                         /* number */
static int calls;                                /* of all methods */
static int fails_filter, fails_next, interrupts; /* after so many calls, 0: never */
static sqlite3 *interrupted;
static int has_spun;
static sqlite3_stmt *inner; /* that xFilter of `nesting` runs */

struct table {
	sqlite3_vtab base;
	int is_same; /* the number is always 7 */
	int is_nesting;
};

struct cursor {
	sqlite3_vtab_cursor base;
	int number, row, rows;
};

static int connect_table(sqlite3 *db, void *context, int argc, const char *const *argv, sqlite3_vtab **made,
                         char **error)
{
	struct table *table = calloc(1, sizeof(*table));

	(void)context, (void)argc, (void)error;
	calls++;
	if (!table)
		return SQLITE_NOMEM;
	table->is_same = !strncmp(argv[0], "same", 4);
	table->is_nesting = !strncmp(argv[0], "nesting", 7);
	*made = &table->base;
	return sqlite3_declare_vtab(db, "CREATE TABLE x(a, b, c)");
}

static int disconnect_table(sqlite3_vtab *table)
{
	calls++;
	free(table);
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct table *table = (struct table *)base;
	int argument = 0;

	calls++;
	for (int i = 0; i < info->nConstraint && i < 30; i++) {
		if (!info->aConstraint[i].usable || (!table->is_same && !draw(3)))
			continue;
		info->aConstraintUsage[i].argvIndex = ++argument;
		info->aConstraintUsage[i].omit = (unsigned char)draw(2);
		if (!table->is_same && draw(2))
			sqlite3_vtab_in(info, i, 1);
	}
	if (newest == NUMBERS)
		return SQLITE_NOMEM;
	info->idxNum = table->is_same ? 7 : newest++;
	if (!table->is_same && draw(2)) {
		info->idxStr = sqlite3_mprintf("x%d", draw(9));
		info->needToFreeIdxStr = 1;
	}
	info->orderByConsumed = info->nOrderBy > 0 && draw(2);
	info->estimatedCost = table->is_same ? 1000.0 / (1 + 500 * argument) : 1 + draw(100000);
	info->estimatedRows = 1 + draw(1000);
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **made)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));

	(void)table;
	calls++;
	*made = cursor ? &cursor->base : NULL;
	return cursor ? SQLITE_OK : SQLITE_NOMEM;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	calls++;
	free(cursor);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;

	(void)text, (void)argv;
	calls++;
	cursor->number = number;
	cursor->row = 0;
	cursor->rows = 1 + (number * 7 + argc * 3 + calls) % 9;
	truth[number].loops++;
	if (!has_spun) {
		has_spun = 1;
		spin(SPIN_NS);
	}
	if (((struct table *)base->pVtab)->is_nesting && inner) {
		while (sqlite3_step(inner) == SQLITE_ROW)
			;
		sqlite3_reset(inner);
	}
	if (fails_filter && !--fails_filter)
		return SQLITE_IOERR;
	truth[number].rows++;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	calls++;
	cursor->row++;
	if (interrupts && !--interrupts)
		sqlite3_interrupt(interrupted);
	if (fails_next && !--fails_next)
		return SQLITE_IOERR;
	truth[cursor->number].rows += cursor->row < cursor->rows;
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	calls++;
	return ((struct cursor *)base)->row >= ((struct cursor *)base)->rows;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int number)
{
	calls++;
	sqlite3_result_int(context, (((struct cursor *)cursor)->row + number) % 4);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
	calls++;
	*id = ((struct cursor *)cursor)->row;
	return SQLITE_OK;
}

#define METHODS                                                                                              \
	.xCreate = connect_table, .xConnect = connect_table, .xBestIndex = best_index,                       \
	.xDisconnect = disconnect_table, .xDestroy = disconnect_table, .xOpen = open_cursor,                 \
	.xClose = close_cursor, .xFilter = filter, .xNext = next_row, .xEof = is_at_end, .xColumn = column,  \
	.xRowid = rowid

static const sqlite3_module first = { METHODS };
static sqlite3_module second = { METHODS };
static sqlite3_module third = { METHODS };

/* --- statements ---------------------------------------------------------------------------------- */

static int statements = 1000;

static void begin_statement(void)
{
	memset(truth, 0, sizeof(truth));
	has_spun = 0;
}

/* `sql` has %d for its number. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	char *text = sqlite3_mprintf(sql, ++statements);
	sqlite3_stmt *stmt;

	must(db, sqlite3_prepare_v2(db, text, -1, &stmt, NULL), text);
	sqlite3_free(text);
	return stmt;
}

static void print_truth_of(const char *name, int number, int from, int to)
{
	for (int i = from; i < to; i++)
		if (truth[i].loops)
			printf("%s\t%d\t%d\t%d\t%d\n", name, number, i, truth[i].loops, truth[i].rows);
}

static void print_truth(const char *name, int number)
{
	print_truth_of(name, number, 0, newest);
}

static void run_kind(sqlite3 *db, const char *kind, const char *sql, int rows)
{
	sqlite3_stmt *stmt = prepare(db, sql);
	int rc = SQLITE_ROW;

	begin_statement();
	while (rows-- && rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	sqlite3_finalize(stmt);
	print_truth(kind, statements);
	printf("result\t%d\t%d\n", statements, rc);
}

static void run(sqlite3 *db, const char *sql)
{
	run_kind(db, "truth", sql, -1);
}

static sqlite3 *open_database(const sqlite3_module *module)
{
	sqlite3 *db;

	must(NULL, sqlite3_open(":memory:", &db), "open");
	must(db, sqlite3_create_module(db, "counting", module, NULL), "module");
	must(db, sqlite3_create_module(db, "same", &second, NULL), "module");
	must(db, sqlite3_create_module(db, "nesting", &third, NULL), "module");
	must_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE INDEX tb ON t(b);"
	              "INSERT INTO t VALUES (1, 2, 3), (2, 3, 1), (3, 1, 2), (4, 9, 9);"
	              "CREATE TABLE u(a, b); CREATE TABLE w(a);"
	              "CREATE VIRTUAL TABLE v USING counting; CREATE VIRTUAL TABLE f USING counting;"
	              "CREATE VIRTUAL TABLE s USING same; CREATE VIRTUAL TABLE n USING nesting;"
	              "CREATE TRIGGER tu AFTER INSERT ON u BEGIN INSERT INTO w SELECT a FROM v WHERE b = "
	              "new.b; END");
	return db;
}

static const char *const fixed[] = {
	"SELECT x.a AS n%d FROM v AS x, v AS y", /* the first: whose cursor is it? */
	"SELECT a AS n%d FROM v",
	"SELECT x.a AS n%d FROM v AS x, f AS y, v AS z",
	"SELECT x.a AS n%d FROM s AS x, s AS y",
	"SELECT x.a AS n%d FROM s AS x, v AS z, s AS y",
	"SELECT t.a AS n%d FROM t JOIN v ON v.a = t.b",
	"SELECT t.a AS n%d FROM t LEFT JOIN v ON v.a = t.b",
	"SELECT t.a AS n%d FROM t LEFT JOIN v ON v.a = t.b LEFT JOIN f ON f.a = v.b",
	"SELECT a AS n%d FROM v WHERE a IN (1, 2, 3)",
	"SELECT v.a AS n%d FROM v WHERE a IN (SELECT b FROM f WHERE c > 1)",
	"SELECT x.a AS n%d FROM v AS x, v AS y WHERE x.a IN (1, 2) AND y.b IN (1, x.b, 3)",
	"SELECT a AS n%d FROM v WHERE a = 1 OR b = 2",
	"SELECT v.a AS n%d FROM t, v WHERE v.a = t.a OR v.b = t.b",
	"SELECT t.a AS n%d, (SELECT count(*) FROM v WHERE v.a = t.b) FROM t",
	"SELECT t.a AS n%d FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.b AND v.c > 1)",
	"WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 8) SELECT r.i AS n%d FROM "
	"r, v WHERE v.a = r.i",
	"WITH RECURSIVE r(i) AS (SELECT a FROM f UNION SELECT v.a + 1 FROM r, v WHERE v.b = r.i AND i < 8) "
	"SELECT i AS n%d FROM r",
	"SELECT a AS n%d FROM v UNION ALL SELECT b FROM f UNION ALL SELECT c FROM v",
	"SELECT a AS n%d FROM v UNION SELECT b FROM f EXCEPT SELECT c FROM v",
	"SELECT x.a AS n%d FROM (SELECT a, count(*) AS k FROM v GROUP BY a) AS x JOIN v AS y ON y.a = x.a",
	"SELECT a AS n%d, sum(b) OVER (PARTITION BY c ORDER BY a) FROM v",
	"SELECT DISTINCT v.a AS n%d FROM v JOIN f USING (b) ORDER BY f.c, v.a DESC",
	"SELECT a AS n%d FROM v LIMIT 2",
	"SELECT x.a AS n%d FROM v AS x JOIN v AS y ON x.a = y.b ORDER BY y.c LIMIT 3",
	"UPDATE t SET c = %d WHERE b IN (SELECT a FROM v)",
	"DELETE FROM w WHERE a = %d OR a IN (SELECT v.a FROM v JOIN f ON f.a = v.a)",
	"INSERT INTO u SELECT a + %d, b FROM t",
	"INSERT INTO u SELECT x.a + %d, x.b FROM v AS x",
	"SELECT max(a) AS n%d FROM (SELECT a FROM v UNION ALL SELECT a FROM s)",
	"SELECT v.a AS n%d FROM v CROSS JOIN t ON t.b = v.a CROSS JOIN f ON f.a = t.a",
};

static void run_random(sqlite3 *db)
{
	static const char *const sources[] = { "v", "f", "t", "s", "(SELECT a, b, c FROM f WHERE b = 2)" };
	static const char *const columns[] = { "a", "b", "c" };
	sqlite3_str *text = sqlite3_str_new(db);
	const uint32_t tables = 1 + draw(3);
	char *sql;

	sqlite3_str_appendf(text, "SELECT %s r0.a AS n%%d FROM", draw(5) ? "" : "DISTINCT");
	for (uint32_t i = 0; i < tables; i++)
		sqlite3_str_appendf(text, "%s %s AS r%d",
		                    !i        ? ""
		                    : draw(2) ? ","
		                              : " LEFT JOIN",
		                    sources[draw(5)], i);
	for (uint32_t i = 0, conditions = draw(4); i < conditions; i++)
		sqlite3_str_appendf(text, " %s r%d.%s %s r%d.%s", i ? "AND" : "WHERE", draw(tables),
		                    columns[draw(3)], draw(2) ? "=" : "<", draw(tables), columns[draw(3)]);
	sql = sqlite3_str_finish(text);
	run(db, sql);
	sqlite3_free(sql);
}

/* Two statements of two connections take turns. */
static void run_turns(sqlite3 *a, sqlite3 *b)
{
	sqlite3_stmt *one = prepare(a, "SELECT x.a AS n%d FROM v AS x, v AS y");
	const int next = newest; /* of the other one's */
	sqlite3_stmt *two = prepare(b, "SELECT x.b AS n%d FROM v AS x, v AS y, f");
	int rows[2] = { SQLITE_ROW, SQLITE_ROW };

	begin_statement();
	rows[0] = sqlite3_step(one);
	has_spun = 0; /* the other one spins, too */
	while (rows[0] == SQLITE_ROW || rows[1] == SQLITE_ROW) {
		if (rows[1] == SQLITE_ROW)
			rows[1] = sqlite3_step(two);
		for (int i = 0; i < 3 && rows[0] == SQLITE_ROW; i++)
			rows[0] = sqlite3_step(one);
	}
	sqlite3_finalize(one);
	sqlite3_finalize(two);
	print_truth_of("truth", statements - 1, 0, next);
	print_truth_of("truth", statements, next, newest);
}

/* Only the last run takes so long that it has a sample. */
static void run_again(sqlite3 *db)
{
	sqlite3_stmt *stmt = prepare(db, "SELECT x.a AS n%d FROM t, v AS x, s AS y, s AS z WHERE x.b > t.b");

	for (int i = 0; i < 4; i++) {
		begin_statement();
		has_spun = i < 3;
		while (sqlite3_step(stmt) == SQLITE_ROW)
			;
		sqlite3_reset(stmt);
	}
	print_truth("truth", statements);
	sqlite3_finalize(stmt);
}

static void run_nesting(sqlite3 *db)
{
	sqlite3_stmt *own = prepare(db, "SELECT inside.a AS n%d FROM v AS inside JOIN v AS other USING (b)");

	inner = own;
	run_kind(db, "nesting", "SELECT n.a AS n%d FROM v AS outside JOIN n", -1);
	inner = NULL;
	sqlite3_finalize(own);
}

static void run_errors(sqlite3 *db)
{
	interrupted = db;
	for (int i = 1; i <= 3; i++) {
		fails_filter = i;
		run(db, "SELECT t.a AS n%d FROM t JOIN v ON v.a > t.b");
		fails_next = 2 * i;
		run(db, "SELECT t.a AS n%d FROM t JOIN v ON v.a > t.b");
		interrupts = 2 * i;
		run(db, "SELECT t.a AS n%d FROM t CROSS JOIN v");
		fails_filter = fails_next = interrupts = 0;
		run_kind(db, "truth", "SELECT x.a AS n%d FROM v AS x, v AS y", 3 * i);
	}
}

int main(void)
{
	sqlite3 *db = open_database(&first), *other = open_database(&first);

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		run(db, fixed[i]);
	run_kind(db, "unclear", "SELECT a AS n%d FROM s WHERE a = 1 OR b = 2", -1);
	for (int i = 0; i < RANDOM_STATEMENTS; i++)
		run_random(db);
	run_turns(db, other);
	run_again(db);
	run_nesting(db);
	run_errors(db);
	/* Registers another module of the same name, and creates the table again. */
	must_exec(db, "DROP TABLE f");
	must(db, sqlite3_create_module(db, "counting", &second, NULL), "module");
	must_exec(db, "CREATE VIRTUAL TABLE f USING counting");
	run(db, "SELECT x.a AS n%d FROM v AS x JOIN f AS y");
	run(other, "SELECT x.a AS n%d FROM v AS x JOIN f AS y");
	sqlite3_close(db);
	run(other, "SELECT x.a AS n%d FROM v AS x JOIN f AS y JOIN v AS z");
	sqlite3_close(other);
	printf("calls %d\n", calls);
	return 0;
}
