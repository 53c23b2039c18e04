/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process has a lock on the trace file. The threads of the store wait for it in short naps; none of
 * the host's does.
 */
#ifndef QUERYPROF_STORE_FILE_CONTENTION_H
#define QUERYPROF_STORE_FILE_CONTENTION_H

#include <stdbool.h>

#include "store/file/database.h"

#define CONTENTION_NAPS_MAX 1000

/* Naps, unless there were `most` naps before, or the caller gives up: false. */
bool contention_nap(const struct database_limits *limits, int naps, int most);

/* For a moment longer than a nap: another process that naps gets its turn. */
void contention_yield(void);

#endif
