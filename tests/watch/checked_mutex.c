/* SPDX-License-Identifier: Apache-2.0 */
#include "checked_mutex.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* SQLite and the library use it as a sqlite3_mutex. It is never freed. */
struct checked {
	sqlite3_mutex *real;
	bool freed;
};

static sqlite3_mutex_methods real;

static sqlite3_mutex *make(int kind)
{
	static struct checked *static_mutexes[32]; /* indexed by kind, each created once */
	bool is_static = kind > SQLITE_MUTEX_RECURSIVE;
	struct checked *mutex = is_static ? __atomic_load_n(&static_mutexes[kind], __ATOMIC_ACQUIRE) : NULL;
	struct checked *other = NULL;

	if (mutex)
		return (sqlite3_mutex *)mutex;
	mutex = calloc(1, sizeof(*mutex));
	mutex->real = real.xMutexAlloc(kind);
	/* Acquire, release: if another thread creates the same mutex, each thread sees its content. */
	if (is_static && !__atomic_compare_exchange_n(&static_mutexes[kind], &other, mutex, false,
	                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		free(mutex);
		mutex = other;
	}
	return (sqlite3_mutex *)mutex;
}

static sqlite3_mutex *use(sqlite3_mutex *of, const char *what)
{
	struct checked *mutex = (struct checked *)of;

	/* Relaxed: the check looks for an order of calls that nothing ensures. */
	if (__atomic_load_n(&mutex->freed, __ATOMIC_RELAXED)) {
		fprintf(stderr, "a mutex of SQLite is %s after it was freed\n", what);
		abort();
	}
	return mutex->real;
}

static void end(sqlite3_mutex *mutex)
{
	real.xMutexFree(use(mutex, "freed"));
	__atomic_store_n(&((struct checked *)mutex)->freed, true, __ATOMIC_RELAXED);
}

static void enter(sqlite3_mutex *mutex)
{
	real.xMutexEnter(use(mutex, "taken"));
}

static int try(sqlite3_mutex *mutex)
{
	return real.xMutexTry(use(mutex, "tried"));
}

static void leave(sqlite3_mutex *mutex)
{
	real.xMutexLeave(use(mutex, "left"));
}

bool check_mutexes(void)
{
	sqlite3_mutex_methods checked = { .xMutexAlloc = make,
		                          .xMutexFree = end,
		                          .xMutexEnter = enter,
		                          .xMutexTry = try,
		                          .xMutexLeave = leave };

	/* SQLite chooses its mutexes when it is initialised, and accepts others only after a shutdown. */
	if (sqlite3_initialize() || sqlite3_shutdown() || sqlite3_config(SQLITE_CONFIG_GETMUTEX, &real))
		return false;
	checked.xMutexInit = real.xMutexInit;
	checked.xMutexEnd = real.xMutexEnd;
	return !sqlite3_config(SQLITE_CONFIG_MUTEX, &checked);
}
