/*
 * The host's SQLite, through the table of routines that it hands to extensions:
 * in this folder `sqlite3_…` always means the host's copy, never the store's own.
 */
#ifndef QUERYPROF_SQLITE_HOST_H
#define QUERYPROF_SQLITE_HOST_H

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

#endif
