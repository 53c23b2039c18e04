/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host whose SQLite mutexes are numbers instead of pointers. Its SQLite is static and cannot be patched,
 * so the library observes statements with the trace callback. It must not access such a mutex as memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h> /* before queryprof.h: qp_attach() is for the copy that is linked */

#include <pthread.h>
#include <queryprof.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/filter.h"

#define MUTEXES 256u
#define FIRST 8u

/* SQLite's fast mutexes are recursive here, too. */
static pthread_mutex_t mutexes[MUTEXES];
static unsigned used = SQLITE_MUTEX_STATIC_VFS3 + 1; /* the static mutexes come first */

static pthread_mutex_t *mutex_of(const sqlite3_mutex *number)
{
	return &mutexes[(uintptr_t)number - FIRST];
}

static sqlite3_mutex *make(int kind)
{
	unsigned number = (unsigned)kind;

	if (kind <= SQLITE_MUTEX_RECURSIVE)
		number = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
	if (number >= MUTEXES)
		abort();
	return (sqlite3_mutex *)(uintptr_t)(FIRST + number);
}

static int begin(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	for (unsigned i = 0; i < MUTEXES; i++)
		pthread_mutex_init(&mutexes[i], &attributes);
	return SQLITE_OK;
}

static int end(void)
{
	return SQLITE_OK;
}

static void let_go(sqlite3_mutex *number)
{
	(void)number;
}

static void enter(sqlite3_mutex *number)
{
	pthread_mutex_lock(mutex_of(number));
}

static int try(sqlite3_mutex *number)
{
	return pthread_mutex_trylock(mutex_of(number)) ? SQLITE_BUSY : SQLITE_OK;
}

static void leave(sqlite3_mutex *number)
{
	pthread_mutex_unlock(mutex_of(number));
}

static void *wait_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

static void test_numbers(void **state)
{
	sqlite3_mutex_methods own = { .xMutexInit = begin,
		                      .xMutexEnd = end,
		                      .xMutexAlloc = make,
		                      .xMutexFree = let_go,
		                      .xMutexEnter = enter,
		                      .xMutexTry = try,
		                      .xMutexLeave = leave };
	pthread_t thread;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MUTEX, &own), SQLITE_OK);
	assert_true(filter_system_calls());
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_true((uintptr_t)sqlite3_db_mutex(db) < 4096);
	assert_int_equal(qp_attach(db), QP_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)", NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM system.processes", NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_numbers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
