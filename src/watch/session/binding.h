/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends a session with its connection.
 */
#ifndef QUERYPROF_WATCH_BINDING_H
#define QUERYPROF_WATCH_BINDING_H

#include "watch/session/session.h"

/* The session of a connection that needs one, from here on until SQLite closes it.
 * `*is_new`: it had none, or was only recorded. NULL: it cannot have one, `*error`
 * (sqlite3_malloc). */
struct session *session_bind(sqlite3 *db, bool *is_new, char **error);

/* A recorded session whose connection was closed with statements left: session_end() follows
 * with the last of them. */
void session_set_closing(struct session *session);

/* The connection goes: its session ends, and its runs with it. Again is nothing. */
void session_end(struct session *session);

#endif
