/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "queryprof.h"
#include "store_schema.h"

int schema_check_identity(const char *path, uint32_t application, uint32_t version, char **error)
{
	if (application != STORE_APPLICATION_ID) {
		*error = text_format("%s: a SQLite database, but not a trace file", path);
		return QP_STORE;
	}
	if (version > STORE_SCHEMA_VERSION) {
		*error = text_format("%s: written by a newer queryprof (schema %u; this version reads up to "
		                     "%d)",
		                     path, version, STORE_SCHEMA_VERSION);
		return QP_TOO_NEW;
	}
	return QP_OK;
}

int schema_make_tables(sqlite3 *db)
{
	return sqlite3_exec(db, store_schema, NULL, NULL, NULL);
}

int schema_make_temporary_views(sqlite3 *db)
{
	static const char statement[] = "\nCREATE ", view[] = "\nCREATE VIEW "; /* each begins a line */
	int code = SQLITE_OK;

	for (const char *at = strstr(store_schema, statement), *next; at && !code; at = next) {
		next = strstr(at + 1, statement);
		if (strncmp(at, view, strlen(view)) != 0)
			continue;
		size_t size = (next ? (size_t)(next - at) : strlen(at)) - strlen(statement);
		char *sql = sqlite3_mprintf("CREATE TEMP %.*s", (int)size, at + strlen(statement));
		code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
		sqlite3_free(sql);
	}
	return code;
}

int schema_set_identity(sqlite3 *db)
{
	char identity[96];

	snprintf(identity, sizeof(identity), "PRAGMA application_id = %d; PRAGMA user_version = %d",
	         STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	return sqlite3_exec(db, identity, NULL, NULL, NULL);
}
