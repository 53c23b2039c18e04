/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds uses of a mutex whose connection was freed. AddressSanitizer does not, because the C library accesses
 * the mutex.
 */
#ifndef QUERYPROF_TESTS_WATCH_CHECKED_MUTEX_H
#define QUERYPROF_TESTS_WATCH_CHECKED_MUTEX_H

#include <stdbool.h>

/* From now on the process is aborted, with a line, when a mutex of SQLite's is used after it
 * was freed. To be called before SQLite is used. False: SQLite does not let us. */
bool check_mutexes(void);

#endif
