/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file/schema.h"

#include <stdio.h>

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

int schema_set_identity(sqlite3 *db)
{
	char identity[96];

	snprintf(identity, sizeof(identity), "PRAGMA application_id = %d; PRAGMA user_version = %d",
	         STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	return sqlite3_exec(db, identity, NULL, NULL, NULL);
}
