/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's mutexes by what they guard, for the waits of queries.
 */
#ifndef QUERYPROF_SQLITE_LOCKS_MUTEXES_H
#define QUERYPROF_SQLITE_LOCKS_MUTEXES_H

#include "sqlite/session/session.h"

/* The mutex of the session's connection, and those of its library, are known as such from now on.
 * Under the connection's mutex. */
void mutexes_follow(struct session *session);

#endif
