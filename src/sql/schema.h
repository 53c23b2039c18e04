/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `system` schema of a session: an attached in-memory database whose tables
 * are all virtual. Nothing is created, locked or written in the host's databases.
 */
#pragma once

#include <stdbool.h>

#include "sqlite/session/session.h"

/* Registers the modules, attaches `system`, and lets PRAGMA system.NAME through to the
 * settings. SQLite reads `main` for that if this connection has not read it yet. When
 * another process has it locked, the result is at once SQLITE_BUSY (schema_is_locked()),
 * with the message of SQLite: the host's busy_timeout is not waited for, only a busy
 * handler of its own is called. When the name `system` is taken, as many databases are
 * attached as can be, or the host's SQLite lacks deserialize, the tables exist without a
 * schema. Works in a transaction and in the middle of a scan, too; again is SQLITE_OK. */
int schema_attach(struct session *session, char **error);
bool schema_is_locked(int rc);

/* Sets what a PRAGMA of queryprof's sets, for the trace of a statement that SQLite made of it; a
 * value that is refused is settings_newest_error(). False: `sql` is no such PRAGMA. */
bool schema_run_pragma(struct session *session, const char *sql);

/* The tables without a schema (eponymous): read-only, and reading one locks `main` as
 * reading any table does. */
int schema_make_eponymous(struct session *session, char **error);

/* Attaching has effects that a host could see: `main` is read, one database less can be
 * attached, and an empty `main` keeps the encoding it has. So a connection goes without
 * the schema until a statement names it.
 *
 * schema_expect() is to be called before a text is prepared: SQLite would look for a table
 * that is missing in all of main, and hold a lock on main for that, or wait for one. schema_follow()
 * is to be called when preparing a statement has just failed. SQLITE_NOTFOUND: not for want of one of our
 * tables; SQLITE_OK: they are there now, prepare again; otherwise they cannot come now, and the connection
 * says why. */
void schema_expect(struct session *session, const char *sql);
int schema_follow(struct session *session);
