/*
 * Sees the host's calls of SQLite: replaces sqlite3_step, sqlite3_reset,
 * sqlite3_finalize, the prepare functions (for bare PRAGMAs of ours), the close
 * functions and, inside the SQLite library, pthread_create, so that its worker
 * threads work for the query that made them. And dlsym(), by which some hosts find what they
 * call, and what ends a process early (ends.h).
 */
#ifndef QUERYPROF_SQLITE_HOOKS_H
#define QUERYPROF_SQLITE_HOOKS_H

#include <stdbool.h>

#include "host.h"

/* Hooks the library that `api` belongs to, in every object that calls it. Again
 * when objects have come since; cheap when none has. True when the host's steps can
 * be seen now; false: use the trace fall-back for connections opened now. */
bool hooks_install(const sqlite3_api_routines *api);

/* For a table of routines that is not the library's own: the library holds `address`.
 * Hooks it at once. */
void hooks_record(const void *address);

/* Hooks what objects have come since. Never waits: safe while the loader loads. Whoever
 * is at it already looks again. */
void hooks_follow(void);

/* In a forked child: the thread that was at it is not here. */
void hooks_after_fork(void);

#endif
