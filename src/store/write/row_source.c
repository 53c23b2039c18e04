/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/row_source.h"

struct rows_table {
	sqlite3_vtab base;
	const struct row_source *source;
	void *memory;
};

struct rows_cursor {
	sqlite3_vtab_cursor base; /* its table is a struct rows_table */
	size_t at;
};

/* The data of a connection's table; of the module, which frees it. */
struct module_data {
	const struct row_source *source;
	void *memory;
};

static struct rows_table *table_of(sqlite3_vtab_cursor *cursor)
{
	return (struct rows_table *)cursor->pVtab;
}

static int connect_table(sqlite3 *db, void *module, int argc, const char *const *argv, sqlite3_vtab **made,
                         char **error)
{
	const struct module_data *data = module;
	struct rows_table *table = sqlite3_malloc(sizeof(*table));
	char *sql = sqlite3_mprintf("CREATE TABLE rows (%s)", data->source->columns);
	int code = table && sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

	(void)argc, (void)argv, (void)error;
	sqlite3_free(sql);
	if (code) {
		sqlite3_free(table);
		return code;
	}
	*table = (struct rows_table){ .source = data->source, .memory = data->memory };
	*made = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int plan_scan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table, (void)info;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **made)
{
	struct rows_cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	(void)table;
	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct rows_cursor){ .at = 0 };
	*made = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int begin_scan(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                      sqlite3_value **argv)
{
	(void)number, (void)text, (void)argc, (void)argv;
	((struct rows_cursor *)cursor)->at = 0;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
	((struct rows_cursor *)cursor)->at++;
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
	const struct rows_table *table = table_of(cursor);

	return ((struct rows_cursor *)cursor)->at >= table->source->count(table->memory);
}

static int read_column(sqlite3_vtab_cursor *cursor, sqlite3_context *result, int column)
{
	const struct rows_table *table = table_of(cursor);

	table->source->read(table->memory, ((struct rows_cursor *)cursor)->at, column, result);
	return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
	*rowid = (sqlite3_int64)((struct rows_cursor *)cursor)->at;
	return SQLITE_OK;
}

int row_source_open(sqlite3 *db, const struct row_source *source, void *memory)
{
	static const sqlite3_module module = {
		.xConnect = connect_table,
		.xBestIndex = plan_scan,
		.xDisconnect = disconnect_table,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = begin_scan,
		.xNext = next_row,
		.xEof = is_at_end,
		.xColumn = read_column,
		.xRowid = read_rowid,
	};
	struct module_data *data = sqlite3_malloc(sizeof(*data));

	if (!data)
		return SQLITE_NOMEM;
	*data = (struct module_data){ source, memory };
	/* Frees the data with the connection, and where it fails. */
	return sqlite3_create_module_v2(db, source->table, &module, data, sqlite3_free);
}
