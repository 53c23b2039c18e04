/*
 * Runs of statements: from the first step of a top-level statement to its end.
 * The hooks (or the trace fall-back) say what happens; this file keeps the open
 * runs and tells the sampler and the query log.
 */
#ifndef QUERYPROF_SQLITE_QUERIES_H
#define QUERYPROF_SQLITE_QUERIES_H

#include <stdint.h>

#include "session.h"

enum queries_counter {
	QUERIES_STARTED,
	QUERIES_LOGGED,
	QUERIES_UNTRACKED, /* more statements open at once than can be told apart */
	QUERIES_COUNTERS,
};
uint64_t queries_counter(enum queries_counter which);

#endif
