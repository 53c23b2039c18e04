/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the list of the library's waits, and tests that each ends on any clock: a clock that jumps, stops,
 * runs backwards, runs ten times as fast or as slow, or cannot be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/lock.h"
#include "queryprof.h"

#define DAY_NS (86400 * NS_PER_S)
#define LIMIT_NS BOUND_MS(10)
#define LONG_NS (20 * NS_PER_S) /* on a busy machine */

enum { RIGHT, JUMPS, STANDS_STILL, BACKWARDS, FAST, SLOW, UNREADABLE, CLOCKS };
static const char *const names[CLOCKS] = { "right",        "jumps a day",  "stands still",  "runs backwards",
	                                   "10 x as fast", "10 x as slow", "cannot be read" };
static int kind; /* atomic */
static uint64_t start_ns;

static uint64_t kernel_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	syscall(SYS_clock_gettime, clock, &now);
	return ns_of_timespec(now);
}

/* Replaces the vdso's function. */
static int broken_clock(clockid_t clock, struct timespec *now)
{
	const uint64_t is = kernel_ns(clock), passed = kernel_ns(CLOCK_MONOTONIC) - start_ns;
	uint64_t shown = is;

	switch (__atomic_load_n(&kind, __ATOMIC_RELAXED)) {
	case JUMPS: shown = is + (passed / BOUND_MS(7) % 2 ? DAY_NS : 2 * DAY_NS); break;
	case STANDS_STILL: shown = 1000 * DAY_NS; break;
	case BACKWARDS: shown = 1000 * DAY_NS - passed; break;
	case FAST: shown = is + 9 * passed; break;
	case SLOW: shown = 1000 * DAY_NS + passed / 10; break;
	case UNREADABLE: return -EINVAL;
	}
	*now = timespec_of_ns(shown);
	return 0;
}

static void set_clock(int which)
{
	start_ns = kernel_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&kind, which, __ATOMIC_RELAXED);
	clock_in_vdso = broken_clock;
}

static bool is_of_library(const char *name)
{
	return !strncmp(name, "a thread of the store:", 22) || !strncmp(name, "the flusher", 11) ||
	       !strncmp(name, "the pacer", 9) || !strncmp(name, "the watch thread", 16) ||
	       !strncmp(name, "the reading thread", 18);
}

static void list_is_printed(void **state)
{
	const struct bounded_wait_kind *const *waits;
	uint32_t count = bounded_wait_kinds(&waits);

	(void)state;
	assert_in_range(count, 25, 100);
	for (uint32_t i = 0; i < count; i++) {
		const struct bounded_wait_kind *wait = waits[i];

		if (wait->limit_ns == BOUND_NONE)
			printf("%-10s", "no limit");
		else if (wait->limit_ns == BOUND_OF_CALLER)
			printf("%-10s", "caller's");
		else
			printf("%7" PRIu64 " ms", wait->limit_ns / 1000000);
		printf(" %s\n           ended by %s\n", wait->name, wait->woken_by);
		assert_non_null(strchr(wait->name, ':'));
		assert_true(wait->limit_ns != 0 && *wait->woken_by);
		/* A host's thread always waits for a limited time. */
		assert_true(wait->limit_ns != BOUND_NONE || is_of_library(wait->name));
	}
	for (int rank = 0; rank < LOCK_RANKS; rank++)
		if (lock_at(rank))
			printf("  holder's %s\n           ended by the thread that releases it\n",
			       lock_at(rank)->name);
}

/* A word whose waiters another thread wakes again and again. */
static uint32_t word;
static bool stop;

static void *wake(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&word, 1, __ATOMIC_RELAXED);
		futex_wake(&word, 1);
	}
	return unused;
}

/* A clock that jumps back may show remaining time again. */
static void run_out(const struct bounded_wait_kind *of, int way, bool is_jumping)
{
	struct bounded_wait wait = bounded_wait_begin_within(of, LIMIT_NS);
	uint32_t never = 0;

	while (bounded_wait_remaining(&wait))
		switch (way) {
		case 0: bounded_wait_futex(&wait, &never, 0, BOUND_NONE); break;
		case 1: bounded_wait_futex(&wait, &never, 0, BOUND_MS(1)); break;
		case 2: bounded_wait_nap(&wait, 100000); break;
		case 3: bounded_wait_nap(&wait, 0); break;
		case 4:
			bounded_wait_futex(&wait, &word, __atomic_load_n(&word, __ATOMIC_RELAXED),
			                   BOUND_NONE);
		}
	if (!is_jumping)
		assert_false(bounded_wait_nap(&wait, 1));
}

static void each_ends_on_any_clock(void **state)
{
	const struct bounded_wait_kind *const *waits;
	uint32_t count = bounded_wait_kinds(&waits);
	pthread_t waker;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&waker, NULL, wake, NULL), 0);
	for (int clock = 0; clock < CLOCKS; clock++)
		for (uint32_t i = 0; i < count; i++) {
			const int way = (int)i % 5;
			uint64_t begin, took;

			if (waits[i]->limit_ns < LIMIT_NS || waits[i]->limit_ns == BOUND_NONE)
				continue;
			set_clock(clock);
			begin = kernel_ns(CLOCK_MONOTONIC);
			run_out(waits[i], way, clock == JUMPS);
			took = kernel_ns(CLOCK_MONOTONIC) - begin;
			if (took > LONG_NS)
				fail_msg("a clock that %s: %s: %" PRIu64 " ns", names[clock], waits[i]->name,
				         took);
			/* The kernel itself counts correctly, whatever the clock shows. */
			if (clock == RIGHT || (way < 2 && clock != JUMPS && clock != FAST))
				assert_true(took >= LIMIT_NS);
		}
	stop = true;
	pthread_join(waker, NULL);
	set_clock(RIGHT);
}

static struct mutex mutex;
static struct condition condition;
BOUNDED_WAIT_DEFINE(of_test, "this test: a mutex", LIMIT_NS, "nothing");

static void *hold(void *ready)
{
	lock_acquire(&mutex);
	__atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n((int *)ready, __ATOMIC_ACQUIRE) == 1)
		usleep(1000);
	lock_release(&mutex);
	return NULL;
}

static void locks_and_conditions_end_on_any_clock(void **state)
{
	pthread_t holder;
	int ready;

	(void)state;
	for (int clock = 0; clock < CLOCKS; clock++) {
		struct bounded_wait wait;

		set_clock(clock);
		ready = 0;
		assert_int_equal(pthread_create(&holder, NULL, hold, &ready), 0);
		while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
			usleep(1000);
		wait = bounded_wait_begin(&of_test);
		assert_false(lock_try(&mutex));
		assert_false(lock_acquire_within(&mutex, &wait));
		__atomic_store_n(&ready, 2, __ATOMIC_RELEASE);
		lock_acquire(&mutex);
		wait = bounded_wait_begin(&of_test);
		while (condition_wait(&condition, &mutex, &wait, BOUND_NONE))
			;
		lock_release(&mutex);
		pthread_join(holder, NULL);
	}
	set_clock(RIGHT);
}

/* --- the whole library ------------------------------------------------------------------------------ */

static void run_a_query(void)
{
	qp_query_begin(NULL);
	for (uint64_t end = kernel_ns(CLOCK_MONOTONIC) + BOUND_MS(20); kernel_ns(CLOCK_MONOTONIC) < end;)
		;
	qp_query_end(0, NULL);
}

/* AddressSanitizer's allocator does not support a child of several threads: a lock that another thread held
 * stays locked. */
static bool child_ends(void)
{
#if !defined(__SANITIZE_ADDRESS__)
	int status;
	pid_t child = fork();

	run_a_query();
	if (!child)
		exit(0);
	return waitpid(child, &status, 0) == child && !status;
#else
	return true;
#endif
}

static void be_host(int clock)
{
	alarm(120); /* by the kernel's clock */
	set_clock(clock);
	if (qp_init(NULL))
		_exit(2);
	run_a_query();
	qp_flush(1000);
	if (!child_ends())
		_exit(3);
	qp_shutdown();
	/* A clock that jumps may have ended the wait for the flusher, which may then still be ending. */
	if (qp_init(NULL) == QP_OK)
		run_a_query();
	exit(0); /* exit() drains the ring */
}

static void process_ends_on_any_clock(void **state)
{
	(void)state;
	for (int clock = 0; clock < CLOCKS; clock++) {
		uint64_t begin = kernel_ns(CLOCK_MONOTONIC);
		int status;
		pid_t child;

		fflush(stdout);
		child = fork();
		if (!child)
			be_host(clock);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status)
			fail_msg("a clock that %s: status %#x", names[clock], (unsigned)status);
		printf("%s: %" PRIu64 " ms\n", names[clock], (kernel_ns(CLOCK_MONOTONIC) - begin) / 1000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_is_printed),
		cmocka_unit_test(each_ends_on_any_clock),
		cmocka_unit_test(locks_and_conditions_end_on_any_clock),
		cmocka_unit_test(process_ends_on_any_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
