/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions begin and end: those of connections that need one until SQLite closes them, and those of
 * connections that are only recorded (sqlite/session/recording.h). The latter begin with the first
 * statement that the hooks see, and end when the host closes the connection.
 */
#pragma once

#include "sqlite/session/session.h"

/* The session of a connection that needs one until SQLite closes it. `*is_new`: it had none, or
 * was only recorded. NULL: it cannot have one, `*error` (sqlite3_malloc). */
struct session *session_bind(sqlite3 *db, bool *is_new, char **error);

/* No call was seen for a time: connections may have been closed, and their statements finalized. No thread
 * begins a call that is seen. */
void sessions_end_old(void);

/* --- connections that are only recorded ----------------------------------------------------- */

/* Finds the opcodes of a library before the host can have an automatic extension in it, which SQLite would
 * call for the connection that this needs. In a call of the host's, whose frame is given. */
void recording_learn(const struct host_library *library, const void *frame);

/* The session of a connection whose statement is about to be stepped: as session_of(), or a
 * new one while all are recorded. */
struct session *session_follow(sqlite3 *db);

/* The same in a call of the host's that is inside of no other. Nothing proves yet that the connection is
 * open: NULL if it was closed. */
struct session *recording_meets(const struct host_library *library, sqlite3 *db);

/* The host is about to close the connection: a recorded session ends now, or with the connection. */
void recording_closing(const struct host_library *library, sqlite3 *db, bool even_with_statements);
