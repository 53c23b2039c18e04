/*
 * The `system` schema of a session: an attached in-memory database whose tables
 * are all virtual. Nothing is created, locked or written in the host's databases.
 */
#ifndef QUERYPROF_SQL_SCHEMA_H
#define QUERYPROF_SQL_SCHEMA_H

#include <stdbool.h>

#include "watch/session.h"

/* Registers the modules, attaches `system`, lets PRAGMA system.NAME through to the
 * settings. When the name `system` is taken, `main` cannot be read now, as many
 * databases are attached as can be, or the host's SQLite lacks deserialize, the
 * tables exist without a schema only (eponymous): read-only, and reading one locks
 * `main` as reading any table does. Works in a transaction and in the middle of a
 * scan, too; again is SQLITE_OK. */
int schema_attach(struct session *session, char **error);

/* To attach has effects that a host could see: `main` is read, one database less can
 * be attached, and an empty `main` keeps the encoding it has. So connections that
 * did not ask for it can go without the schema until they name it: to be called when
 * preparing a statement has just failed. If that was for want of `system` or of one
 * of the two logs, attaches; true: prepare again. */
bool schema_follow(struct session *session);

#endif
