/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of locks is complete, the library takes them in its order, and they do not block a forked child,
 * even if another thread holds one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "queryprof.h"

/* The host's SQLite. The store uses another one, which is linked to this program. */
static struct {
	qp_sqlite routines;
	int (*exec)(void *, const char *, int (*)(void *, int, char **, char **), void *, char **);
} host;

static bool is_sanitized(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	return true;
#else
	return false;
#endif
}

static int load_host(void **state)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

	(void)state;
	if (!library)
		return -1;
	host.routines.size = sizeof(host.routines);
	*(void **)&host.routines.open = dlsym(library, "sqlite3_open");
	*(void **)&host.routines.close = dlsym(library, "sqlite3_close");
	*(void **)&host.routines.auto_extension = dlsym(library, "sqlite3_auto_extension");
	*(void **)&host.routines.cancel_auto_extension = dlsym(library, "sqlite3_cancel_auto_extension");
	*(void **)&host.exec = dlsym(library, "sqlite3_exec");
	return 0;
}

static int count_metric(void *context, const qp_metric *metric)
{
	(void)metric;
	++*(int *)context;
	return 0;
}

/* Uses every part of the library. Returns NULL, or the part that failed. */
static const char *use_everything(void)
{
	static const char *const statements[] = {
		"SELECT count(*) FROM settings",
		"SELECT count(*) FROM metrics",
		"SELECT count(*) FROM processes",
		"SELECT count(*) FROM stack_trace",
		"SELECT count(*) FROM trace_log",
		"SELECT addressToSymbol(1), addressToLine(1), buildId(1)",
		"PRAGMA query_profiler_cpu_time_period_ns = 1000000",
		"WITH c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c LIMIT 100000) SELECT sum(i) FROM c",
	};
	struct sqlite3 *db = NULL;
	int metrics = 0;

	if (qp_init(NULL))
		return qp_error();
	if (qp_query_begin(NULL) || qp_query_end(0, NULL))
		return qp_error();
	if (qp_query_finish(qp_query_start(NULL), 0, NULL))
		return qp_error();
	qp_record();
	if (host.routines.open(":memory:", &db) || qp_attach_of(db, &host.routines))
		return qp_error();
	for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++)
		host.exec(db, statements[i], NULL, NULL, NULL);
	if (qp_set(db, "log_queries", "1"))
		return qp_error();
	qp_metrics(count_metric, &metrics);
	qp_flush(5000);
	return host.routines.close(db) || metrics < 10 ? "SQLite or the metrics" : NULL;
}

NOT_ANALYSED static void run_child(void)
{
	const char *failed;

	alarm(300); /* a lock that no thread releases ends the child */
	for (int rank = 0; rank < LOCK_RANKS; rank++) {
		const struct lock *lock = lock_at(rank);

		if (lock && lock->mutex && !lock_try(lock->mutex)) {
			fprintf(stderr, "%s is held in the child\n", lock->name);
			_exit(1);
		}
		if (lock && lock->mutex)
			lock_release(lock->mutex);
	}
	failed = use_everything();
	if (failed)
		fprintf(stderr, "in the child: %s\n", failed);
	_exit(failed ? 1 : 0);
}

/* Returns whether a child forked now can use everything. */
static bool child_is_good(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		run_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fprintf(stderr, "the child's status: %#x\n", (unsigned)status);
	return status == 0;
}

/* --- another thread that holds locks --------------------------------------------- */

struct holder {
	pthread_t thread;
	int first, last; /* ranks */
	int hold_ms;     /* -1: until `release` */
	sem_t held, release;
};

/* A lock that fork() itself acquires or releases. NULL: the rank does not have one. */
NOT_ANALYSED static struct mutex *mutex_at(int rank)
{
	const struct lock *lock = lock_at(rank);

	return lock && lock->at_fork != LOCK_GROUPED ? lock->mutex : NULL;
}

NOT_ANALYSED static void *hold(void *context)
{
	struct holder *holder = context;

	for (int rank = holder->first; rank <= holder->last; rank++)
		if (mutex_at(rank))
			lock_acquire(mutex_at(rank));
	sem_post(&holder->held);
	if (holder->hold_ms < 0)
		sem_wait(&holder->release);
	else
		usleep((useconds_t)holder->hold_ms * 1000);
	for (int rank = holder->last; rank >= holder->first; rank--)
		if (mutex_at(rank))
			lock_release(mutex_at(rank));
	return NULL;
}

static void holder_start(struct holder *holder, int first, int last, int hold_ms)
{
	*holder = (struct holder){ .first = first, .last = last, .hold_ms = hold_ms };
	sem_init(&holder->held, 0, 0);
	sem_init(&holder->release, 0, 0);
	assert_int_equal(pthread_create(&holder->thread, NULL, hold, holder), 0);
	sem_wait(&holder->held);
}

static void holder_stop(struct holder *holder)
{
	sem_post(&holder->release);
	pthread_join(holder->thread, NULL);
}

/* --- tests ------------------------------------------------------------------------ */

static void every_rank_has_its_lock(void **state)
{
	(void)state;
	for (int rank = 0; rank < LOCK_RANKS; rank++) {
		const struct lock *lock = lock_at(rank);

		if (!lock)
			fail_msg("no lock at place %d", rank);
		assert_true((lock->mutex != NULL) != (lock->group != NULL));
	}
}

/* The status of a process that takes the second rank's lock while it holds the first one's. */
static int status_of(int first, int second)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		prctl(PR_SET_DUMPABLE, 0); /* no core file */
		alarm(300);
		lock_acquire(lock_at(first)->mutex);
		lock_acquire(lock_at(second)->mutex);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void a_wrong_order_is_found(void **state)
{
	(void)state;
#ifdef NDEBUG
	skip(); /* only builds with assertions find it */
#endif
	assert_int_equal(status_of(LOCK_STORE_CONTROL, LOCK_STORE_POOL), 0);
	assert_int_equal(WTERMSIG(status_of(LOCK_STORE_POOL, LOCK_STORE_CONTROL)), SIGABRT);
	assert_int_equal(status_of(LOCK_PROCESS, LOCK_THREADS), 0);
	assert_int_equal(WTERMSIG(status_of(LOCK_THREADS, LOCK_PROCESS)), SIGABRT);
	assert_int_equal(WTERMSIG(status_of(LOCK_PROCESS, LOCK_PROCESS)), SIGABRT);
}

/* The library takes its locks in order, too: lock.c aborts the test if a thread takes two in another
 * order. */
static void locks_are_taken_in_order(void **state)
{
	const char *failed;
	struct holder holder;

	(void)state;
	holder_start(&holder, 0, LOCK_RANKS - 1, 0);
	holder_stop(&holder);
	failed = use_everything();
	if (failed)
		fail_msg("%s", failed);
}

static void a_child_has_every_lock(void **state)
{
	(void)state;
	for (int rank = 0; rank < LOCK_RANKS; rank++) {
		struct holder holder;
		bool good;

		holder_start(&holder, rank, rank, 20);
		good = child_is_good();
		holder_stop(&holder);
		if (!good)
			fail_msg("%s", lock_at(rank)->name);
	}
}

/* fork() does not wait for these locks forever, or the test would not end. */
static void locks_that_are_never_released(void **state)
{
	struct holder holder;
	const char *failed;
	bool good;

	(void)state;
	holder_start(&holder, 0, LOCK_RANKS - 1, -1);
	good = child_is_good();
	holder_stop(&holder);
	assert_true(good);
	failed = use_everything();
	if (failed)
		fail_msg("%s", failed);
}

/* --- cancellation ------------------------------------------------------------------ */

struct cancelled {
	struct sqlite3 *db;
	bool has_run, has_forked, has_flushed;
	pid_t child;
};

/* A cancellation is pending all the time. None of these calls is a cancellation point. */
static void *use_while_cancelled(void *context)
{
	struct cancelled *cancelled = context;

	pthread_cancel(pthread_self());
	cancelled->has_run = !host.exec(cancelled->db, "SELECT 1", NULL, NULL, NULL);
	cancelled->child = fork();
	if (!cancelled->child)
		_exit(0);
	cancelled->has_forked = cancelled->child > 0;
	cancelled->has_flushed = qp_flush(60000) == QP_OK;
	pthread_testcancel();
	return NULL;
}

static void a_cancelled_thread_comes_back(void **state)
{
	struct cancelled cancelled = { .db = NULL };
	pthread_t thread;
	void *result;
	int status;

	(void)state;
	alarm(120); /* ends a hanging test */
	assert_int_equal(qp_init(NULL), QP_OK);
	assert_int_equal(host.routines.open(":memory:", &cancelled.db), 0);
	assert_int_equal(qp_attach_of(cancelled.db, &host.routines), QP_OK);
	assert_int_equal(host.exec(cancelled.db, "SELECT 1", NULL, NULL, NULL), 0);
	assert_int_equal(qp_flush(60000), QP_OK); /* the flusher runs */
	assert_int_equal(pthread_create(&thread, NULL, use_while_cancelled, &cancelled), 0);
	pthread_join(thread, &result);
	assert_true(cancelled.has_run);
	assert_true(cancelled.has_forked);
	assert_true(cancelled.has_flushed);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(waitpid(cancelled.child, &status, 0), cancelled.child);
	assert_int_equal(status, 0);
	/* No lock remains taken. */
	assert_int_equal(host.exec(cancelled.db, "SELECT 1", NULL, NULL, NULL), 0);
	assert_int_equal(qp_flush(60000), QP_OK);
	assert_int_equal(host.routines.close(cancelled.db), 0);
	alarm(0);
}

/* Releasing the last lock restores the thread's own cancellation state. */
static void a_lock_holds_a_cancellation_back(void **state)
{
	struct mutex *outer = lock_at(LOCK_PROCESS)->mutex, *inner = lock_at(LOCK_THREADS)->mutex;
	int found;

	(void)state;
	for (int before = PTHREAD_CANCEL_ENABLE; before <= PTHREAD_CANCEL_DISABLE; before++) {
		pthread_setcancelstate(before, NULL);
		lock_acquire(outer);
		lock_acquire(inner);
		lock_release(inner);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &found);
		assert_int_equal(found, PTHREAD_CANCEL_DISABLE);
		lock_release(outer);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &found);
		assert_int_equal(found, before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_has_its_lock),
		cmocka_unit_test(a_wrong_order_is_found),
		cmocka_unit_test(locks_are_taken_in_order),
		cmocka_unit_test(a_lock_holds_a_cancellation_back),
		cmocka_unit_test(a_cancelled_thread_comes_back),
		cmocka_unit_test(a_child_has_every_lock),
		cmocka_unit_test(locks_that_are_never_released),
	};

	/* The sanitizers' run-times have locks of their own, which a child may inherit. */
	return _cmocka_run_group_tests("locks", tests, is_sanitized() ? 5 : 7, load_host, NULL);
}
