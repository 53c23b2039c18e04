/*
 * The `system` schema of a session: an attached in-memory database whose tables
 * are all virtual. Nothing is created, locked or written in the host's databases.
 */
#ifndef QUERYPROF_SQLITE_SCHEMA_H
#define QUERYPROF_SQLITE_SCHEMA_H

#include "session.h"

/* Registers the modules, attaches `system`, lets PRAGMA system.NAME through to the
 * settings. When the name `system` is taken, or the host's SQLite lacks deserialize,
 * the tables exist under their bare names only (eponymous). */
int schema_attach(struct session *session, char **error);

#endif
