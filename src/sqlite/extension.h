/*
 * The one SQLite library that we work with.
 */
#ifndef QUERYPROF_SQLITE_EXTENSION_H
#define QUERYPROF_SQLITE_EXTENSION_H

#include "host.h"

/* Works with the library of these routines from now on. SQLite's result: refused, with
 * a message in `*error` (sqlite3_malloc), when it is too old, or another library is
 * worked with already. */
int extension_adopt(const sqlite3_api_routines *api, char **error);

#endif
