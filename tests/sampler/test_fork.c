/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() while several threads are being sampled: the child begins with an empty ring, one slot and its own
 * timers, and the parent is unaffected.
 */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "collect/slots.h"

static struct ring *ring;
static struct query_run run;
static uint32_t stop_working, working;
static struct query_key *child_key; /* shared with the child */

static void *work(void *context)
{
	struct thread *thread = sampler_thread();
	struct query_tag tag = tag_of(context, 1000000, 200000);

	__atomic_fetch_add(&working, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop_working, __ATOMIC_ACQUIRE)) {
		sampler_push(thread, &tag);
		burn(3000000);
		sampler_pop(thread);
		burn(500000);
	}
	return NULL;
}

static void in_child(struct thread *thread, struct query_key parent_key)
{
	struct drained seen = { 0 };

	CHECK(sampler_thread() == thread && thread->id == sys_gettid());
	CHECK(sampler_counter(SAMPLER_THREADS) == 1);
	CHECK(sampler_counter(SAMPLER_TIMERS) == 2 && kernel_timers() <= 2);
	/* The query and its samples continue immediately. */
	CHECK(nesting_top(thread) && nesting_top(thread)->key.lo == parent_key.lo);
	while (seen.samples[SAMPLE_CPU] == 0 || seen.samples[SAMPLE_REAL] == 0) {
		burn(1000000);
		drain(ring, &seen);
		CHECK(seen.wrong == 0);
		CHECK(seen.newest.thread_id == 0 || seen.newest.thread_id == sys_gettid());
	}
	CHECK(seen.threads == 1);
	sampler_pop(thread);
	query_start(&run, thread);
	*child_key = run.key;
	query_leave(&run, thread);
	query_finish(&run, &(struct query_end){ .query = "child" });
	drain(ring, &seen);
	CHECK(seen.queries == 1);
	assert_ledger();
	CHECK(ledger_read(LEDGER_LATE) == 0 && sampler_quiesce());
	CHECK(ledger_read(LEDGER_STORED) == seen.samples[0] + seen.samples[1]);

	/* New threads of the child find free slots. None of them continues the parent's random numbers. */
	for (uint32_t i = 0; i < slots_count(); i++)
		CHECK(slots_get(i) == thread || slots_get(i)->random == 0);
	stop_working = 1;
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&threads[i], NULL, work, &run) == 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	CHECK(sampler_counter(SAMPLER_THREADS) == 1);
	fflush(stdout);
	_exit(0);
}

static void test_busy_fork(void **state)
{
	static struct query_run runs[3];
	pthread_t threads[3];
	struct thread *thread = sampler_thread();
	struct drained seen = { 0 };
	(void)state;

	child_key = mmap(NULL, sizeof(*child_key), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(child_key != MAP_FAILED);
	for (int i = 0; i < 3; i++) {
		query_start(&runs[i], thread);
		assert_int_equal(pthread_create(&threads[i], NULL, work, &runs[i]), 0);
	}
	/* A starting thread is inside AddressSanitizer's allocator, which does not handle its locks at a
	 * fork. A child that started threads hung. */
	while (__atomic_load_n(&working, __ATOMIC_ACQUIRE) < 3)
		burn(100000);
	for (int i = 0; i < 40; i++) {
		query_start(&run, thread);
		struct query_tag tag = tag_of(&run, 1000000, 1000000);
		sampler_push(thread, &tag);
		burn(2000000);
		fflush(stdout);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			in_child(thread, run.key);
		int status = -1;
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0)
			fail_msg("child %d: status %#x", i, (unsigned)status);
		sampler_pop(thread);
		/* Parent and child have different random numbers. */
		assert_true(child_key->lo != 0);
		for (int key = 0; key < 10; key++) {
			query_start(&run, thread);
			assert_true(child_key->lo != run.key.lo);
		}
		drain(ring, &seen);
	}
	__atomic_store_n(&stop_working, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	drain(ring, &seen);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.samples[0] + seen.samples[1], ledger_read(LEDGER_STORED));
	assert_ledger();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy_fork),
	};

	if (UNDER_TSAN) {
		puts("skipped: ThreadSanitizer delivers signals late");
		return 0;
	}
	ring = ring_create(1 << 20);
	if (ring == NULL || sampler_init(ring) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
