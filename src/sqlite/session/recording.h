/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording: every connection is a session, without schema, functions or PRAGMAs, from the
 * first statement that the hooks see of it. Nothing is added to the connection, so the hooks
 * also see its end; but where the host closes it with statements left SQLite reports that (binding.c).
 */
#ifndef QUERYPROF_SQLITE_SESSION_RECORDING_H
#define QUERYPROF_SQLITE_SESSION_RECORDING_H

#include "sqlite/session/session.h"

/* From now on all connections are recorded. `start`, called before a session is made, says
 * whether there is anything to sample with, and hooks what could not be hooked before. */
void session_record_all(bool (*start)(void));
bool session_recording(void);

/* Starts what the first session of a recorded process would start. False: nothing is recorded. */
bool session_start_recording(void);

/* Finds the opcodes of a library before the host can have an automatic extension in it, which SQLite would
 * call for the connection that this needs. In a call of the host's, whose frame is given. */
void recording_learn(const struct host_library *library, const void *frame);

/* The settings of new sessions may have changed: while all are recorded and that has a
 * period, any statement may be one of a connection that has no session yet. */
void session_watch_strangers(void);

/* The session of a connection whose statement is about to be stepped: as session_of(), or a
 * new one while all are recorded. */
struct session *session_follow(sqlite3 *db);

/* The same in a call of the host's that is inside of no other. Nothing proves yet that the connection is
 * open: NULL if it was closed. */
struct session *recording_meets(const struct host_library *library, sqlite3 *db);

/* The host is about to close the connection: a recorded session ends now, or with the
 * connection. */
void recording_closing(const struct host_library *library, sqlite3 *db, bool even_with_statements);

#endif
