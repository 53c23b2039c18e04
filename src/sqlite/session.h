/*
 * One session: a connection of the host's that has queryprof.
 */
#ifndef QUERYPROF_SQLITE_SESSION_H
#define QUERYPROF_SQLITE_SESSION_H

#include "host.h"
#include "settings.h"

struct session {
	sqlite3 *db;
	struct session_settings settings;
	/* Taken by the hooks for a connection whose steps cannot be hooked. */
	bool traced;
};

/* Makes `db` a session: schema, functions, settings. Once a connection; again is
 * SQLITE_OK. SQLite calls it for every new connection after the first. On failure
 * the connection is left as it was, with a message in `*error` (sqlite3_malloc). */
int session_attach(sqlite3 *db, char **error);

/* The session of a connection, NULL when it has none. Lock-free; any thread. */
struct session *session_of(sqlite3 *db);

#endif
