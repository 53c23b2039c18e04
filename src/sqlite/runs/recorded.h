/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of connections that are only recorded (session/recording.h): each begins with the first statement
 * that the hooks see, and ends when the host closes the connection.
 */
#ifndef QUERYPROF_SQLITE_RUNS_RECORDED_H
#define QUERYPROF_SQLITE_RUNS_RECORDED_H

#include "sqlite/session/session.h"

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

#endif
