/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording: every connection is a session, without schema, functions or PRAGMAs, from the
 * first statement that the hooks see of it. Nothing is added to the connection, so the hooks
 * also see its end; but where the host closes it with statements left SQLite reports that
 * (runs/session_life.c).
 */
#pragma once

#include "sqlite/session/session.h"

/* From now on all connections are recorded. `start` is called before a session is made; it returns
 * whether samples are possible, and hooks what could not be hooked before. */
void session_record_all(bool (*start)(void));
bool session_recording(void);

/* Starts what the first session of a recorded process would start. False: nothing is recorded. */
bool session_start_recording(void);

/* The settings of new sessions may have changed: while all are recorded and these settings have a
 * period, any statement may belong to a connection without a session. */
void session_watch_strangers(void);
