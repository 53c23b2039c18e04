/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads begin and end while they are sampled. No timer and no slot remains, however a thread ends.
 */
#include "common.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include "handler/timer.h"
#include "handler/budget.h"

static struct ring *ring;
static struct query_run run;
static struct drained seen;

/* Counts seeds. A thread continues the random numbers of the thread that had its slot before. */
static uint64_t seeds;

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
	__atomic_fetch_add(&seeds, 1, __ATOMIC_RELAXED);
	return syscall(SYS_getrandom, buffer, size, flags);
}

static void assert_nothing_left(void)
{
	/* The kernel lets pthread_join() return a moment before a thread without destructors is gone. */
	for (int i = 0; i < 10000; i++) {
		sampler_reap();
		if (sampler_counter(SAMPLER_THREADS) == 0)
			break;
		usleep(1000);
	}
	printf("threads %llu, slots %llu, timers %llu, the kernel's %d\n",
	       (unsigned long long)sampler_counter(SAMPLER_THREADS),
	       (unsigned long long)sampler_counter(SAMPLER_SLOTS),
	       (unsigned long long)sampler_counter(SAMPLER_TIMERS), kernel_timers());
	assert_int_equal(sampler_counter(SAMPLER_THREADS), 0);
	assert_int_equal(sampler_counter(SAMPLER_TIMERS), 0);
	assert_int_equal(kernel_timers(), 0);
	assert_ledger();
}

/* --- a thousand threads ---------------------------------------------------------------- */

#define THREADS 1000
#define AT_ONCE 20

static void *live(void *context)
{
	struct query_tag tag = tag_of(&run, 1000000, 1000000);
	(void)context;

	for (int i = 0; i < 3; i++) {
		struct thread *thread = sampler_thread();
		assert_non_null(thread);
		sampler_push(thread, &tag);
		burn(500000);
		sampler_pop(thread);
	}
	return NULL;
}

static void test_thousand(void **state)
{
	pthread_t threads[AT_ONCE];
	(void)state;

	for (int i = 0; i < THREADS / AT_ONCE; i++) {
		for (int t = 0; t < AT_ONCE; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, live, NULL), 0);
		for (int t = 0; t < AT_ONCE; t++) {
			drain(ring, &seen);
			pthread_join(threads[t], NULL);
		}
		assert_int_equal(kernel_timers(), 0);
	}
	drain(ring, &seen);
	printf("%llu CPU and %llu Real samples, %llu names\n", (unsigned long long)seen.samples[SAMPLE_CPU],
	       (unsigned long long)seen.samples[SAMPLE_REAL], (unsigned long long)seen.threads);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.threads + ledger_read(LEDGER_DROPPED) >= THREADS, 1);
	assert_true(seen.samples[SAMPLE_CPU] + seen.samples[SAMPLE_REAL] > THREADS / 2);
	/* Their slots and this thread's: a slot is made only if all others are taken. */
	assert_in_range(sampler_counter(SAMPLER_SLOTS), 1, AT_ONCE + 1);
	assert_int_equal(seeds, sampler_counter(SAMPLER_SLOTS));
	assert_nothing_left();
}

/* --- ways to end --------------------------------------------------------------------------- */

static void *end_inside(void *context)
{
	struct query_tag tag = tag_of(&run, 1000000, 1000000);

	sampler_push(sampler_thread(), &tag);
	burn(5000000);
	pthread_exit(context);
}

static void *end_bare(void *context)
{
	struct query_tag tag = tag_of(&run, 1000000, 1000000);
	(void)context;

	sampler_push(sampler_thread(), &tag);
	burn(5000000);
	/* No destructor runs. */
	syscall(SYS_exit, 0);
	return NULL;
}

/* The sampler's key is the last of them. */
#define KEYS_IN_THREAD 32

static pthread_key_t late_key;
static int late_queries;

/* Runs in each round of destructors. */
static void query_late(void *value)
{
	struct query_tag tag = tag_of(&run, 1000000, 1000000);
	struct thread *thread = sampler_thread();
	intptr_t round = (intptr_t)value;

	assert_non_null(thread);
	sampler_push(thread, &tag);
	burn(2000000);
	sampler_pop(thread);
	late_queries++;
	if (round < 8)
		pthread_setspecific(late_key, (void *)(round + 1));
}

static void *end_late(void *context)
{
	struct query_tag tag = tag_of(&run, 1000000, 1000000);
	struct thread *thread = sampler_thread();
	(void)context;

	pthread_setspecific(late_key, (void *)1);
	sampler_push(thread, &tag);
	burn(2000000);
	sampler_pop(thread);
	return NULL;
}

static void run_thread(void *(*function)(void *))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
	pthread_join(thread, NULL);
	drain(ring, &seen);
}

static void test_ends(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		run_thread(end_inside);
	assert_nothing_left();

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	for (int i = 0; i < 20; i++)
		run_thread(end_bare);
	assert_in_range(sampler_counter(SAMPLER_THREADS), 1, 20); /* new threads reap, too */
	assert_nothing_left();
#else
	(void)end_bare;
#endif

	if (UNDER_TSAN) /* TSan leaves a thread before its last destructors */
		return;
	/* Destructors run in the order of their keys' numbers. The first run is before the sampler's, the
	 * second after it. */
	assert_int_equal(pthread_key_create(&late_key, query_late), 0);
	for (int i = 0; i < 20; i++)
		run_thread(end_late);
	while (late_key < KEYS_IN_THREAD)
		assert_int_equal(pthread_key_create(&late_key, query_late), 0);
	for (int i = 0; i < 20; i++)
		run_thread(end_late);
	assert_int_equal(late_queries, 2 * 20 * PTHREAD_DESTRUCTOR_ITERATIONS);
	assert_nothing_left();
}

/* --- names, stacks ---------------------------------------------------------------------------- */

static char newest_name[20];
static uintptr_t main_frame;

static uint64_t drain_names(void)
{
	unsigned kind;
	size_t size;
	void *record;
	uint64_t names = 0;

	while ((record = ring_peek(ring, &kind, &size))) {
		if (kind == RECORD_THREAD) {
			const struct thread_record *thread = record;
			if (thread->thread_id == sys_gettid()) {
				strcpy(newest_name, thread->name);
				names++;
			}
		}
		ring_consume(ring);
	}
	return names;
}

static void *be_named(void *context)
{
	struct query_tag tag = tag_of(&run, 1000000, 0);
	int local;
	(void)context;

	prctl(PR_SET_NAME, "first name");
	struct thread *thread = sampler_thread();
	assert_int_equal(drain_names(), 1);
	assert_string_equal(newest_name, "first name");
	assert_in_range((uintptr_t)&local, thread->stack.start, thread->stack.end - 1);
	prctl(PR_SET_NAME, "second, 15 char");
	/* A query after a signal writes the new name, within a second. */
	do {
		sampler_push(thread, &tag);
		burn(2000000);
		sampler_pop(thread);
	} while (drain_names() == 0);
	assert_string_equal(newest_name, "second, 15 char");
	return NULL;
}

static void test_names(void **state)
{
	int local;
	(void)state;

	if (UNDER_TSAN)
		skip();
	drain(ring, &seen);
	run_thread(be_named);

	struct thread *thread = sampler_thread();
	assert_in_range((uintptr_t)&local, thread->stack.start, thread->stack.end - 1);
	/* The main thread's top is above the first frame, wherever that is. */
	assert_in_range(main_frame, thread->stack.start, thread->stack.end - 1);
	sampler_exclude_thread();
	assert_nothing_left();
}

/* --- the budget and threads -------------------------------------------------------------- */

#define LIVING 4
#define LOOKS_NS (3 * BUDGET_CHECK_NS)

static void *live_on(void *context)
{
	while (!__atomic_load_n((bool *)context, __ATOMIC_RELAXED))
		live(NULL);
	return NULL;
}

/* ThreadSanitizer checks that the budget and a thread may use a timer at the same time. */
static void test_budget(void **state)
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + LOOKS_NS;
	pthread_t threads[LIVING];
	bool done = false;
	(void)state;

	for (int t = 0; t < LIVING; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, live_on, &done), 0);
	while (clock_ns(CLOCK_MONOTONIC) < end) {
		budget_update(ring);
		drain(ring, &seen);
		usleep(1000);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (int t = 0; t < LIVING; t++)
		pthread_join(threads[t], NULL);
	drain(ring, &seen);
	assert_nothing_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thousand),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_budget),
	};

	main_frame = (uintptr_t)__builtin_frame_address(0);
	ring = ring_create(1 << 20);
	if (ring == NULL || sampler_init(ring) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
