/*
 * The worker threads of SQLite's own.
 */
#ifndef QUERYPROF_SQLITE_WORKERS_H
#define QUERYPROF_SQLITE_WORKERS_H

#include "got.h"
#include "host.h"

/* What makes the threads that the library starts work for the query of their maker. */
struct got_hook workers_hook(const struct host_library *library);

#endif
