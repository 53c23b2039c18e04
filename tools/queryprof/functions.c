/*
 * queryprof's SQL functions for a connection of the command's own, without a
 * profiler. They are the library's, which reach SQLite through the table of
 * routines that SQLite hands to extensions: so this file is one for a moment.
 */
#include "sql/functions.h"

#include <stdlib.h>

/* As in command.h, whose plain SQLite calls this file cannot include. */
int trace_functions_add(sqlite3 *db, char **error);
void trace_functions_free(void);

/* The one name that an extension cannot reach through the table. */
#undef sqlite3_auto_extension
#undef sqlite3_cancel_auto_extension
#undef sqlite3_open
#undef sqlite3_close
int sqlite3_auto_extension(void (*entry)(void));
int sqlite3_cancel_auto_extension(void (*entry)(void));
int sqlite3_open(const char *path, sqlite3 **db);
int sqlite3_close(sqlite3 *db);

static struct session *session;

static int take_routines(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db;
	return host_adopt(api, error) ? SQLITE_OK : SQLITE_ERROR;
}

int trace_functions_add(sqlite3 *db, char **error)
{
	if (!sqlite3_api) {
		sqlite3 *scratch = NULL;
		int code = sqlite3_auto_extension((void (*)(void))take_routines);
		if (code == SQLITE_OK)
			code = sqlite3_open(":memory:", &scratch);
		sqlite3_close(scratch);
		sqlite3_cancel_auto_extension((void (*)(void))take_routines);
		if (code != SQLITE_OK || !sqlite3_api)
			return SQLITE_ERROR;
	}
	session = calloc(1, sizeof(*session));
	if (!session)
		return SQLITE_NOMEM;
	session->db = db;
	settings_defaults(&session->settings);
	return functions_register(session, error);
}

void trace_functions_free(void)
{
	free(session);
	session = NULL;
}
