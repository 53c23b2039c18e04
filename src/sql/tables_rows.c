/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that are made when they are read: fill() adds all cells of the table, a cursor
 * walks over them. They are small, so no condition is pushed down, except the name of the row
 * that an UPDATE changes. Otherwise an UPDATE of a setting with a wrong name would change nothing
 * and report no error.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "sql/tables_rows.h"
#include "sqlite/runs/own_statements.h"
#include "frames/process_space.h"
#include "frames/stack_text.h"

struct cell {
	enum { INTEGER, REAL, TEXT } type;
	int64_t integer;
	double real;
	char *text; /* NULL: NULL */
};

struct table_rows {
	VECTOR(struct cell) cells; /* row by row */
	bool failed;               /* no memory */
};

static struct cell *add_cell(struct table_rows *rows)
{
	struct cell *cell = rows->failed ? NULL : vector_add(&rows->cells);

	rows->failed = !cell;
	return cell;
}

void table_add_integer(struct table_rows *rows, int64_t value)
{
	struct cell *cell = add_cell(rows);

	if (cell)
		cell->integer = value;
}

void table_add_real(struct table_rows *rows, double value)
{
	struct cell *cell = add_cell(rows);

	if (!cell)
		return;
	cell->type = REAL;
	cell->real = value;
}

void table_add_text(struct table_rows *rows, const char *text)
{
	struct cell *cell = add_cell(rows);

	if (!cell)
		return;
	cell->type = TEXT;
	if (text && !(cell->text = strdup(text)))
		rows->failed = true;
}

void table_add_failed(struct table_rows *rows)
{
	rows->failed = true;
}

static void free_rows(struct table_rows *rows)
{
	for (size_t i = 0; i < rows->cells.count; i++)
		free(rows->cells.items[i].text);
	vector_free(&rows->cells);
	memset(rows, 0, sizeof(*rows));
}

/* --- a cursor -------------------------------------------------------------- */

struct cursor {
	sqlite3_vtab_cursor base;
	struct table_rows rows;
	size_t at; /* row */
};

enum { PLAN_ALL, PLAN_BY_NAME };

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct table_vtab *ours = (const struct table_vtab *)vtab;

	own_statements_disown_prepared(ours->session->db);
	for (int i = 0; ours->table->update && i < info->nConstraint; i++)
		if (info->aConstraint[i].usable && info->aConstraint[i].iColumn == 0 &&
		    info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
			info->idxNum = PLAN_BY_NAME;
			info->aConstraintUsage[i].argvIndex = 1; /* SQLite compares, too */
			break;
		}
	info->estimatedRows = 100;
	info->estimatedCost = 1000;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **result)
{
	(void)vtab;
	return table_new_cursor(sizeof(struct cursor), result);
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	free_rows(&cursor->rows);
	free(cursor);
	return SQLITE_OK;
}

static bool has_name(const struct cursor *cursor, const char *name)
{
	const size_t width = (size_t)table_of(&cursor->base)->column_count;

	for (size_t i = 0; i < cursor->rows.cells.count; i += width)
		if (cursor->rows.cells.items[i].text && !strcmp(cursor->rows.cells.items[i].text, name))
			return true;
	return false;
}

/* Whether the statement that reads the table also writes to it. A write by the transaction is not enough,
 * because another statement may read an unknown name. */
static bool is_update(const struct table_vtab *vtab)
{
	sqlite3 *db = vtab->session->db;

	for (sqlite3_stmt *stmt = vtab->in_write ? sqlite3_next_stmt(db, NULL) : NULL; stmt;
	     stmt = sqlite3_next_stmt(db, stmt))
		if (sqlite3_stmt_busy(stmt) && !sqlite3_stmt_readonly(stmt))
			return true;
	return false;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *plan_text, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct table *table = table_of(base);
	struct session *session = ((const struct table_vtab *)base->pVtab)->session;

	own_statements_disown(session->db);
	(void)plan_text, (void)argc;
	free_rows(&cursor->rows);
	cursor->at = 0;
	if (table->tells_of_code && !session->settings.allow_introspection_functions)
		return table_fail(base->pVtab, text_format("%s" NOT_ALLOWED, table->name));
	table->fill(&cursor->rows, session);
	if (cursor->rows.failed)
		return SQLITE_NOMEM;
	const char *name = plan == PLAN_BY_NAME ? (const char *)sqlite3_value_text(argv[0]) : NULL;
	if (name && !has_name(cursor, name) && is_update((const struct table_vtab *)base->pVtab))
		return table_fail(base->pVtab,
		                  text_format("system.%s has no row with the %s %.*s; SELECT %s FROM "
		                              "system.%s lists them",
		                              table->name, table->columns[0].name, (int)text_fit(name, 64),
		                              name, table->columns[0].name, table->name));
	return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
	((struct cursor *)base)->at++;
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (const struct cursor *)base;

	return (cursor->at + 1) * (size_t)table_of(base)->column_count > cursor->rows.cells.count;
}

/* Symbols or lines of the row's trace. */
static int made_column(const struct cursor *cursor, sqlite3_context *context, const struct cell *row,
                       const struct column *column)
{
	const struct table_vtab *vtab = (const struct table_vtab *)cursor->base.pVtab;
	const struct table *table = vtab->table;
	char *text = NULL;
	bool bad;

	if (!table_may_introspect(context, vtab, column))
		return SQLITE_OK;
	for (int i = 0; i < table->column_count; i++)
		if (!strcmp(table->columns[i].name, "trace") && row[i].text)
			text = column->flags & COLUMN_LINES
			               ? stack_lines(process_space(), row[i].text, &bad)
			               : stack_symbols(process_space(), row[i].text, &bad);
	if (!text)
		return SQLITE_NOMEM;
	sqlite3_result_text(context, text, -1, free);
	return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index)
{
	const struct cursor *cursor = (const struct cursor *)base;
	const struct column *described = &table_of(base)->columns[index];
	const struct cell *row = &cursor->rows.cells.items[cursor->at * (size_t)table_of(base)->column_count];
	const struct cell *cell = &row[index];

	/* An UPDATE that does not set the column: update() sees that, too. */
	if (sqlite3_libversion_number() >= 3022000 && sqlite3_vtab_nochange(context))
		return SQLITE_OK;
	if (described->flags & (COLUMN_SYMBOLS | COLUMN_LINES))
		return made_column(cursor, context, row, described);
	if (cell->type == INTEGER)
		sqlite3_result_int64(context, cell->integer);
	else if (cell->type == REAL)
		sqlite3_result_double(context, cell->real);
	else if (cell->text)
		sqlite3_result_text(context, cell->text, -1, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *result)
{
	*result = (sqlite3_int64)((struct cursor *)base)->at;
	return SQLITE_OK;
}

/* argv: the row's old and new number, then its columns; old NULL: INSERT; alone:
 * DELETE. */
static int update(sqlite3_vtab *vtab, int argc, sqlite3_value **argv, sqlite3_int64 *result)
{
	const struct table_vtab *ours = (const struct table_vtab *)vtab;
	const struct table *table = ours->table;
	char *error = NULL;
	int rc = SQLITE_READONLY;

	(void)result;
	if (!table->update)
		error = sqlite3_mprintf("system.%s cannot be changed", table->name);
	else if (argc < 2 || sqlite3_value_type(argv[0]) == SQLITE_NULL ||
	         sqlite3_value_int64(argv[0]) != sqlite3_value_int64(argv[1]))
		error = sqlite3_mprintf("system.%s adds and removes its rows itself; only UPDATE works",
		                        table->name);
	else
		rc = table->update(ours->session, sqlite3_value_int64(argv[0]), argv + 2, &error);
	if (error) {
		sqlite3_free(vtab->zErrMsg);
		vtab->zErrMsg = error;
	}
	return rc;
}

static int begin_write(sqlite3_vtab *vtab)
{
	((struct table_vtab *)vtab)->in_write = true;
	return SQLITE_OK;
}

/* Values that were set stay set. */
static int end_write(sqlite3_vtab *vtab)
{
	((struct table_vtab *)vtab)->in_write = false;
	return SQLITE_OK;
}

const sqlite3_module table_rows_module = {
	TABLE_METHODS,         .xCreate = table_refuse_create, .xConnect = table_connect, .xUpdate = update,
	.xBegin = begin_write, .xCommit = end_write,           .xRollback = end_write,
};

/* Without xUpdate: to change a table that is the host's `main` to SQLite would lock
 * and, before a commit, write the host's file. */
const sqlite3_module table_rows_eponymous = {
	TABLE_METHODS,
	.xConnect = table_connect_eponymous,
};
