/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version of the trace file only adds to the previous one: tables, indexes, columns with a default value,
 * and views, which hold no data. So one rule upgrades every version: sql/schema/store_schema.sql runs on an
 * empty database, and the file gets everything that it lacks in comparison.
 */
#include "store/file/upgrade.h"

#include <stdbool.h>
#include <string.h>

#include "store/file/schema.h"

struct upgrade {
	sqlite3 *db;
	bool temporary;
	sqlite3_str *columns; /* of the view that replaces a table */
};

/* Runs `sql` and frees it. */
static int run(sqlite3 *db, char *sql)
{
	int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return code;
}

/* Whether `sql`, which has two parameters, selects a row. */
static int has(sqlite3 *db, const char *sql, const char *first, const char *second, bool *found)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (!code) {
		sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
		*found = sqlite3_step(statement) == SQLITE_ROW;
	}
	return code ? code : sqlite3_finalize(statement);
}

static int add_column(struct upgrade *upgrade, const char *table, sqlite3_stmt *column)
{
	const char *name = (const char *)sqlite3_column_text(column, 0);
	const char *type = (const char *)sqlite3_column_text(column, 1);
	const char *value = (const char *)sqlite3_column_text(column, 2);
	const char *not_null = sqlite3_column_int(column, 3) ? "NOT NULL " : "";
	bool found;
	int code = has(upgrade->db, "SELECT 1 FROM pragma_table_info(?1, 'main') WHERE name = ?2", table,
	               name, &found);

	if (code || found)
		return code;
	if (!upgrade->temporary)
		return run(upgrade->db,
		           sqlite3_mprintf("ALTER TABLE main.\"%w\" ADD COLUMN \"%w\" %s %sDEFAULT %s", table,
		                           name, type, not_null, value));
	sqlite3_str_appendf(upgrade->columns, ", %s AS \"%w\"", value, name);
	return sqlite3_str_errcode(upgrade->columns);
}

static int add_columns(struct upgrade *upgrade, sqlite3 *model, const char *table)
{
	sqlite3_stmt *column = NULL;
	int code = sqlite3_prepare_v2(model,
	                              "SELECT name, type, dflt_value, [notnull] FROM pragma_table_info(?1)"
	                              " WHERE dflt_value IS NOT NULL",
	                              -1, &column, NULL);

	if (code)
		return code;
	upgrade->columns = sqlite3_str_new(upgrade->db);
	sqlite3_bind_text(column, 1, table, -1, SQLITE_STATIC);
	while (!code && sqlite3_step(column) == SQLITE_ROW)
		code = add_column(upgrade, table, column);
	sqlite3_finalize(column);
	bool lacks = sqlite3_str_length(upgrade->columns) > 0;
	char *columns = sqlite3_str_finish(upgrade->columns);
	if (!code && lacks)
		code = run(upgrade->db,
		           sqlite3_mprintf("CREATE TEMP VIEW \"%w\" AS SELECT *%s FROM main.\"%w\"", table,
		                           columns, table));
	sqlite3_free(columns);
	return code;
}

/* `sql` is in SQLite's own form, with "CREATE " before the object's kind. */
static int create(struct upgrade *upgrade, const char *sql)
{
	const size_t verb = strlen("CREATE ");

	if (strlen(sql) < verb)
		return SQLITE_CORRUPT;
	return run(upgrade->db,
	           sqlite3_mprintf("CREATE %s%s", upgrade->temporary ? "TEMP " : "", sql + verb));
}

static int add_object(struct upgrade *upgrade, sqlite3 *model, sqlite3_stmt *object)
{
	const char *type = (const char *)sqlite3_column_text(object, 0);
	const char *name = (const char *)sqlite3_column_text(object, 1);
	const char *sql = (const char *)sqlite3_column_text(object, 2);
	bool found;
	int code;

	code = has(upgrade->db, "SELECT 1 FROM main.sqlite_schema WHERE name = ?2 AND type = ?1", type, name,
	           &found);
	if (code)
		return code;
	if (strcmp(type, "view") == 0) {
		/* Always made again, because it may differ, or depend on tables that do. */
		if (found && !upgrade->temporary)
			code = run(upgrade->db, sqlite3_mprintf("DROP VIEW main.\"%w\"", name));
		return code ? code : create(upgrade, sql);
	}
	if (strcmp(type, "table") == 0 && found)
		return add_columns(upgrade, model, name);
	/* Such a table is empty, and a temporary index cannot belong to a table of the file. */
	if (found || (upgrade->temporary && strcmp(type, "index") == 0))
		return SQLITE_OK;
	return create(upgrade, sql);
}

static int add_what_lacks(struct upgrade *upgrade)
{
	sqlite3 *model = NULL;
	sqlite3_stmt *object = NULL;
	int code = sqlite3_open_v2(":memory:", &model, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, "unix");

	if (!code)
		code = schema_make_tables(model);
	if (!code)
		code = sqlite3_prepare_v2(model,
		                          "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
		                          " ORDER BY rowid",
		                          -1, &object, NULL);
	while (!code && (code = sqlite3_step(object)) == SQLITE_ROW)
		code = add_object(upgrade, model, object);
	sqlite3_finalize(object);
	sqlite3_close(model);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

int upgrade_file(sqlite3 *db)
{
	struct upgrade upgrade = { .db = db };

	return add_what_lacks(&upgrade);
}

int upgrade_view(sqlite3 *db, int64_t version)
{
	struct upgrade upgrade = { .db = db, .temporary = true };

	/* A file of this version lacks only what a user has removed. */
	return version >= STORE_SCHEMA_VERSION ? schema_make_temporary_views(db) : add_what_lacks(&upgrade);
}
