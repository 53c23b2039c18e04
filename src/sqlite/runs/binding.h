/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends a session with its connection.
 */
#ifndef QUERYPROF_SQLITE_RUNS_BINDING_H
#define QUERYPROF_SQLITE_RUNS_BINDING_H

#include "sqlite/session/session.h"

/* The session of a connection that needs one until SQLite closes it. `*is_new`: it had none, or
 * was only recorded. NULL: it cannot have one, `*error` (sqlite3_malloc). */
struct session *session_bind(sqlite3 *db, bool *is_new, char **error);

/* The host is about to close the session's connection while statements are left: the session ends
 * when SQLite frees the connection. */
void session_bind_closing(struct session *session, sqlite3 *db, bool even_with_statements);

/* session_of() of a connection that is open, in a call of its library. The session of another
 * connection that was at its address, the end of which nobody has reported, ends. */
struct session *session_of_open(const struct host_library *library, sqlite3 *db);

/* The connection is freed: its session and the session's runs end. Idempotent. */
void session_end(struct session *session);

#endif
