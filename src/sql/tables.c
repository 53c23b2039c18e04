/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of tables, and what their two kinds share: registering with a connection and
 * connecting.
 *
 * All are SQLITE_VTAB_DIRECTONLY: the views and triggers of a foreign database file cannot
 * reach them.
 */
#include "sql/tables.h"

#include <stdlib.h>
#include <string.h>

#include "system_columns.h" /* of the logs */

#define LIST_TABLE(name) &table_##name,
static const struct table *const tables[] = { EACH_TABLE(LIST_TABLE) };
#undef LIST_TABLE
#define TABLES ((int)(sizeof(tables) / sizeof(*tables)))

int tables_count(void)
{
	return TABLES;
}

const char *tables_name(int index)
{
	return tables[index]->name;
}

/* The data of a registered module. */
struct registration {
	const struct table *table;
	struct session *session;
};

int tables_register(struct session *session, enum tables_where where, char **error)
{
	static const sqlite3_module *const modules[2][2] = {
		[TABLES_IN_SCHEMA] = { &table_rows_module, &table_log_module },
		[TABLES_EPONYMOUS] = { &table_rows_eponymous, &table_log_eponymous },
	};

	for (int i = 0; i < TABLES; i++) {
		struct registration *aux = sqlite3_malloc(sizeof(*aux));
		char name[64];
		int rc;

		if (!aux)
			return SQLITE_NOMEM;
		aux->table = tables[i];
		aux->session = session;
		sqlite3_snprintf(sizeof(name), name, "%s%s",
		                 where == TABLES_IN_SCHEMA ? TABLES_MODULE_PREFIX : "", tables[i]->name);
		rc = sqlite3_create_module_v2(session->db, name, modules[where][tables[i]->log != NULL], aux,
		                              sqlite3_free);
		if (rc) {
			*error =
				sqlite3_mprintf("queryprof: table %s: %s", name, sqlite3_errmsg(session->db));
			return rc;
		}
	}
	return SQLITE_OK;
}

static int declare(sqlite3 *db, const struct table *table)
{
	char sql[4096] = "CREATE TABLE x(";

	for (int i = 0; i < table->column_count; i++) {
		const struct column *column = &table->columns[i];
		size_t size = strlen(sql);

		sqlite3_snprintf((int)(sizeof(sql) - size), sql + size, "%s\"%s\" %s%s", i ? "," : "",
		                 column->name, column->type, column->flags & COLUMN_HIDDEN ? " HIDDEN" : "");
	}
	strcat(sql, ")");
	return sqlite3_declare_vtab(db, sql);
}

static int connect_table(sqlite3 *db, const struct registration *registration, sqlite3_vtab **vtab)
{
	struct table_vtab *ours;
	int rc = declare(db, registration->table);

	if (rc)
		return rc;
	/* An SQLite older than the option ignores it. */
	sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
	ours = sqlite3_malloc(sizeof(*ours));
	if (!ours)
		return SQLITE_NOMEM;
	memset(ours, 0, sizeof(*ours));
	ours->table = registration->table;
	ours->session = registration->session;
	*vtab = &ours->base;
	return SQLITE_OK;
}

/* Whether the database has a table of that name; true if SQLite cannot tell. */
static bool has_table(sqlite3 *db, const char *schema, const char *name)
{
	char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".sqlite_master WHERE name = %Q COLLATE NOCASE",
	                            schema, name);
	sqlite3_stmt *stmt = NULL;
	bool found =
		!sql || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) || sqlite3_step(stmt) != SQLITE_DONE;

	sqlite3_finalize(stmt);
	sqlite3_free(sql);
	return found;
}

/* A database file may also contain CREATE VIRTUAL TABLE … USING one of these modules. The host takes that
 * table for its own data, so it must not be one of queryprof's. */

int table_connect_eponymous(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                            char **error)
{
	/* Without such a statement, table and module have the same name, which no schema contains. */
	if (argc != 3 || strcmp(argv[0], argv[2]) || has_table(db, argv[1], argv[2]))
		return table_refuse_create(db, aux, argc, argv, vtab, error);
	return connect_table(db, aux, vtab);
}

int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                  char **error)
{
	if (strcmp(argv[1], "system"))
		return table_refuse_create(db, aux, argc, argv, vtab, error);
	return connect_table(db, aux, vtab);
}

int table_refuse_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                        char **error)
{
	(void)db, (void)aux, (void)argc, (void)vtab;
	*error = sqlite3_mprintf("%s: queryprof's tables are in the schema system", argv[0]);
	return SQLITE_ERROR;
}

int table_disconnect(sqlite3_vtab *vtab)
{
	sqlite3_free(vtab);
	return SQLITE_OK;
}

int table_new_cursor(size_t bytes, sqlite3_vtab_cursor **cursor)
{
	*cursor = calloc(1, bytes);
	return *cursor ? SQLITE_OK : SQLITE_NOMEM;
}

/* A table exists as long as its schema is attached. SQLite ignores messages of this method. */
int table_refuse_destroy(sqlite3_vtab *vtab)
{
	(void)vtab;
	return SQLITE_READONLY;
}

bool table_may_introspect(sqlite3_context *context, const struct table_vtab *vtab,
                          const struct column *column)
{
	char text[128];

	if (vtab->session->settings.allow_introspection_functions)
		return true;
	sqlite3_snprintf(sizeof(text), text, "%s.%s" NOT_ALLOWED, vtab->table->name, column->name);
	sqlite3_result_error(context, text, -1);
	return false;
}

int table_fail(sqlite3_vtab *vtab, char *text)
{
	sqlite3_free(vtab->zErrMsg);
	vtab->zErrMsg = sqlite3_mprintf("%s", text ? text : "out of memory");
	free(text);
	return SQLITE_ERROR;
}
