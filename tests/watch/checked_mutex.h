/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds uses of a mutex whose connection was freed. AddressSanitizer does not, because the C library accesses
 * the mutex.
 */
#ifndef QUERYPROF_TESTS_WATCH_CHECKED_MUTEX_H
#define QUERYPROF_TESTS_WATCH_CHECKED_MUTEX_H

#include <stdbool.h>

/* Aborts the process, with a message, when one of SQLite's mutexes is used after it was freed. Call it
 * before SQLite is used. Returns false if SQLite refuses the functions. */
bool check_mutexes(void);

#endif
