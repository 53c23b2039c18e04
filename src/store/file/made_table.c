/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file/made_table.h"

#include <stdlib.h>

/* One per connection. */
struct module {
	const struct made_table *made;
	void *data;
};

struct table {
	sqlite3_vtab base;
	const struct made_table *made;
	sqlite3 *db;
	void *data, *memory;
};

struct cursor {
	sqlite3_vtab_cursor base; /* its table is a struct table */
	size_t at, count;
	void *rows;
};

static struct table *table_of(const struct cursor *cursor)
{
	return (struct table *)cursor->base.pVtab;
}

static void free_rows(struct cursor *cursor)
{
	const struct made_table *made = table_of(cursor)->made;

	if (made->free_rows)
		made->free_rows(cursor->rows);
}

static int connect_table(sqlite3 *db, void *given_module, int argc, const char *const *argv,
                         sqlite3_vtab **given, char **error)
{
	const struct module *module = given_module;
	const struct made_table *made = module->made;
	struct table *table = calloc(1, sizeof(*table));
	void *memory = calloc(1, made->memory_size + 1);
	char *sql = sqlite3_mprintf("CREATE TABLE made (%s)", made->columns);
	int code = table && memory && sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

	(void)argc, (void)argv, (void)error;
	sqlite3_free(sql);
	if (code) {
		free(table);
		free(memory);
		return code;
	}
	*table = (struct table){ .made = made, .db = db, .data = module->data, .memory = memory };
	*given = &table->base;
	return SQLITE_OK;
}

/* If create and connect were the same function, the table would exist without CREATE, and any table of the
 * file could hide it. */
static int create_table(sqlite3 *db, void *module, int argc, const char *const *argv, sqlite3_vtab **given,
                        char **error)
{
	return connect_table(db, module, argc, argv, given, error);
}

static int disconnect_table(sqlite3_vtab *base)
{
	struct table *table = (struct table *)base;

	if (table->made->free_memory)
		table->made->free_memory(table->memory);
	free(table->memory);
	free(table);
	return SQLITE_OK;
}

/* A scan is estimated as expensive, so that it becomes the outermost loop of a join. */
static int plan_scan(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct table *table = (struct table *)base;

	if (table->made->ask)
		table->made->ask(table->data, table->memory, info->colUsed);
	info->idxStr = sqlite3_mprintf("%llx", (long long)info->colUsed); /* idxNum has 32 bits */
	info->needToFreeIdxStr = 1;
	info->estimatedCost = 1e9;
	info->estimatedRows = 100000;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **given)
{
	const struct table *table = (struct table *)base;
	struct cursor *cursor = calloc(1, sizeof(*cursor));
	void *rows = calloc(1, table->made->rows_size);

	if (!cursor || !rows) {
		free(cursor);
		free(rows);
		return SQLITE_NOMEM;
	}
	cursor->rows = rows;
	*given = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	free_rows(cursor);
	free(cursor->rows);
	free(cursor);
	return SQLITE_OK;
}

static int begin_scan(sqlite3_vtab_cursor *base, int number, const char *used, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct table *table = table_of(cursor);

	(void)number, (void)argc, (void)argv;
	free_rows(cursor);
	char *error = NULL;
	int code = table->made->make(table->db, table->data, table->memory, cursor->rows,
	                             strtoull(used, NULL, 16), &error);
	if (code && !error && code != SQLITE_NOMEM)
		error = sqlite3_mprintf("%s", sqlite3_errmsg(table->db));
	if (code) {
		sqlite3_free(table->base.zErrMsg);
		table->base.zErrMsg = error;
	}
	cursor->at = 0;
	cursor->count = code ? 0 : table->made->count(cursor->rows);
	return code;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	((struct cursor *)base)->at++;
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (struct cursor *)base;

	return cursor->at >= cursor->count;
}

static int read_column(sqlite3_vtab_cursor *base, sqlite3_context *result, int column)
{
	const struct cursor *cursor = (struct cursor *)base;
	const struct table *table = table_of(cursor);

	table->made->read(table->memory, cursor->rows, cursor->at, column, result);
	return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
	*rowid = (sqlite3_int64)((struct cursor *)base)->at;
	return SQLITE_OK;
}

#define METHODS                                                                                              \
	.xConnect = connect_table, .xBestIndex = plan_scan, .xDisconnect = disconnect_table,                 \
	.xDestroy = disconnect_table, .xOpen = open_cursor, .xClose = close_cursor, .xFilter = begin_scan,   \
	.xNext = next_row, .xEof = is_at_end, .xColumn = read_column, .xRowid = read_rowid

int made_table_add(sqlite3 *db, const struct made_table *made, void *data)
{
	static const sqlite3_module with_create = { .xCreate = create_table, METHODS }, without = { METHODS };
	struct module *module = malloc(sizeof(*module));

	if (!module)
		return SQLITE_NOMEM;
	*module = (struct module){ made, data };
	/* The connection frees it when it is closed, or if this fails. */
	return sqlite3_create_module_v2(db, made->name, made->needs_create ? &with_create : &without, module,
	                                free);
}
