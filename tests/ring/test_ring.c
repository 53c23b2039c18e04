/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: order, wrap-around, content, drops, wake-ups.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "collect/ring_reader.h"

/* A record that contains its producer and its number, followed by bytes that depend on both. */
struct mark {
	uint64_t producer, number;
};

static unsigned char *bytes_of(struct mark *mark)
{
	return (unsigned char *)(mark + 1);
}

static unsigned char byte_of(uint64_t producer, uint64_t number, size_t i)
{
	return (unsigned char)(producer * 31 + number * 7 + i);
}

static bool put(struct ring *ring, uint64_t producer, uint64_t number, size_t tail, unsigned kind)
{
	struct mark *mark = ring_reserve(ring, sizeof(*mark) + tail);

	if (mark == NULL)
		return false;
	mark->producer = producer;
	mark->number = number;
	for (size_t i = 0; i < tail; i++)
		bytes_of(mark)[i] = byte_of(producer, number, i);
	ring_commit(ring, mark, kind);
	return true;
}

/* Checks and consumes the oldest record. Fails if there is none. */
static struct mark take(struct ring *ring, unsigned expected_kind)
{
	unsigned kind = 0;
	size_t size = 0;
	struct mark *mark = ring_peek(ring, &kind, &size);

	assert_non_null(mark);
	assert_int_equal(kind, expected_kind);
	assert_int_equal((uintptr_t)mark % 8, 0);
	for (size_t i = 0; i < size - sizeof(*mark); i++)
		assert_int_equal(bytes_of(mark)[i], byte_of(mark->producer, mark->number, i));
	struct mark copy = *mark;
	ring_consume(ring);
	return copy;
}

static bool is_empty(struct ring *ring)
{
	unsigned kind;
	size_t size;

	return ring_peek(ring, &kind, &size) == NULL;
}

static void test_sizes(void **state)
{
	static const size_t asked[][2] = {
		{ 0, RING_MIN_BYTES },        { 4096, 4096 }, { 4097, 8192 }, { 1 << 20, 1 << 20 },
		{ SIZE_MAX, RING_MAX_BYTES },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct ring *ring = ring_create(asked[i][0]);
		assert_non_null(ring);
		assert_int_equal(ring_bytes(ring), asked[i][1]);
		assert_true(is_empty(ring));
		ring_destroy(ring);
	}
}

/* Wherever the head is, the largest record fits into an empty ring, and one byte more does not. */
static void test_largest_record(void **state)
{
	struct ring *ring = ring_create(RING_MIN_BYTES);
	size_t largest = ring_max_payload(ring) - sizeof(struct mark);
	(void)state;

	for (uint64_t i = 0; i < 3 * RING_MIN_BYTES / 8; i++) {
		assert_true(put(ring, 1, i, largest, 1));
		assert_int_equal(take(ring, 1).number, i);
		assert_true(put(ring, 2, i, 0, 2)); /* moves the head by three words */
		assert_int_equal(take(ring, 2).number, i);
	}
	assert_int_equal(ring_dropped(ring), 0);
	assert_null(ring_try_reserve(ring, ring_max_payload(ring) + 1));
	assert_int_equal(ring_dropped(ring), 0); /* does not count as dropped */
	assert_null(ring_reserve(ring, ring_max_payload(ring) + 1));
	assert_null(ring_reserve(ring, SIZE_MAX));
	assert_int_equal(ring_dropped(ring), 2);
	assert_true(is_empty(ring));
	ring_destroy(ring);
}

/* Records of any sizes, filled until the ring refuses, emptied, over and over. All accepted records come out
 * in order. */
static void test_wrap(void **state)
{
	struct ring *ring = ring_create(RING_MIN_BYTES);
	uint64_t next_in = 0, next_out = 0, refused = 0;
	unsigned seed = 1;
	(void)state;

	for (int round = 0; round < 2000; round++) {
		int count = rand_r(&seed) % 40;
		while (count-- > 0) {
			if (put(ring, 3, next_in, (size_t)rand_r(&seed) % 300, 7))
				next_in++;
			else
				refused++;
		}
		count = rand_r(&seed) % 40;
		while (count-- > 0 && next_out < next_in)
			assert_int_equal(take(ring, 7).number, next_out++);
	}
	while (next_out < next_in)
		assert_int_equal(take(ring, 7).number, next_out++);
	assert_true(is_empty(ring));
	assert_true(refused > 0);
	assert_int_equal(ring_dropped(ring), refused);
	assert_int_equal(ring_head(ring), ring_tail(ring));
	ring_destroy(ring);
}

/* A record is not readable before its commit, nor before the commit of older records. */
static void test_commit_order(void **state)
{
	struct ring *ring = ring_create(RING_MIN_BYTES);
	uint64_t *first = ring_reserve(ring, 8), *second = ring_reserve(ring, 8);
	uint64_t head = ring_head(ring);
	(void)state;

	*second = 2;
	ring_commit(ring, second, 1);
	assert_true(is_empty(ring));
	*first = 1;
	ring_commit(ring, first, 1);
	for (uint64_t i = 1; i <= 2; i++) {
		unsigned kind;
		size_t size;
		assert_true(ring_tail(ring) < head);
		uint64_t *record = ring_peek(ring, &kind, &size);
		assert_non_null(record);
		assert_int_equal(*record, i);
		assert_int_equal(size, 8);
		ring_consume(ring);
	}
	assert_int_equal(ring_tail(ring), head);
	ring_destroy(ring);
}

/* --- many threads ----------------------------------------------------------------- */

#define PRODUCERS 6
#define ATTEMPTS 40000

struct producer {
	struct ring *ring;
	uint64_t id, stored;
	size_t largest;
	pthread_t thread;
};

static void *produce(void *context)
{
	struct producer *self = context;
	unsigned seed = (unsigned)self->id;

	for (int i = 0; i < ATTEMPTS; i++) {
		if (put(self->ring, self->id, self->stored, (size_t)rand_r(&seed) % self->largest, 5))
			self->stored++;
		if (i % 64 == 0)
			sched_yield(); /* otherwise one producer alone would fill the ring */
	}
	return NULL;
}

static void run_producers(size_t ring_size, size_t largest)
{
	struct ring *ring = ring_create(ring_size);
	struct producer producers[PRODUCERS];
	uint64_t next[PRODUCERS] = { 0 };
	uint64_t received = 0, settled = 0;

	for (uint64_t i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ .ring = ring, .id = i, .largest = largest };
		assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
	}
	/* Every attempt ends as a record or as a drop, so this loop ends. */
	while (settled < (uint64_t)PRODUCERS * ATTEMPTS || !is_empty(ring)) {
		unsigned kind;
		size_t size;
		while (ring_peek(ring, &kind, &size)) {
			struct mark mark = take(ring, 5);
			assert_true(mark.producer < PRODUCERS);
			assert_int_equal(mark.number, next[mark.producer]);
			next[mark.producer]++;
			received++;
		}
		settled = received + ring_dropped(ring);
		ring_wait(ring, 1000000);
	}
	uint64_t stored = 0;
	for (int i = 0; i < PRODUCERS; i++) {
		pthread_join(producers[i].thread, NULL);
		assert_int_equal(producers[i].stored, next[i]);
		stored += producers[i].stored;
	}
	printf("ring of %zu: %d attempts, %llu received, %llu dropped\n", ring_size, PRODUCERS * ATTEMPTS,
	       (unsigned long long)received, (unsigned long long)ring_dropped(ring));
	assert_int_equal(stored, received);
	assert_int_equal(received + ring_dropped(ring), (uint64_t)PRODUCERS * ATTEMPTS);
	assert_int_equal(ring_head(ring), ring_tail(ring));
	ring_destroy(ring);
}

static void test_producers_tiny_ring(void **state)
{
	(void)state;
	run_producers(RING_MIN_BYTES, 200);
}

static void test_producers_large_records(void **state)
{
	(void)state;
	run_producers(RING_MIN_BYTES, 2000);
}

static void test_producers_roomy_ring(void **state)
{
	(void)state;
	run_producers(1 << 20, 100);
}

/* --- a thread that interrupts itself -------------------------------------------------------- */

static struct ring *interrupted_ring;
static volatile sig_atomic_t from_handler;
static volatile sig_atomic_t inside; /* between reserve and commit */
static volatile sig_atomic_t met_inside;

static void on_alarm(int number)
{
	int saved = errno;
	(void)number;

	if (put(interrupted_ring, 1, (uint64_t)from_handler, 24, 5))
		from_handler++;
	met_inside += inside;
	errno = saved;
}

static void test_self_interruption(void **state)
{
	struct ring *ring = interrupted_ring = ring_create(RING_MIN_BYTES);
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	uint64_t mine = 0, next[2] = { 0, 0 };
	(void)state;

	from_handler = met_inside = 0;
	sigaction(SIGALRM, &action, NULL);
#if !defined(__SANITIZE_THREAD__) /* it delivers a late signal while that signal is blocked */
	setitimer(ITIMER_REAL, &often, NULL);
#else
	(void)often;
#endif
	for (long i = 0; i < 20000; i++) {
		struct mark *mark = ring_reserve(ring, sizeof(*mark) + 16);
		if (mark) {
			inside = 1;
			mark->producer = 0;
			/* One signal certainly comes here; the timer's signals come anywhere. */
			if (i % 8 == 0)
				raise(SIGALRM);
			mark->number = mine++;
			for (size_t b = 0; b < 16; b++)
				bytes_of(mark)[b] = byte_of(0, mark->number, b);
			inside = 0;
			ring_commit(ring, mark, 5);
		}
		while (!is_empty(ring)) {
			struct mark seen = take(ring, 5);
			assert_int_equal(seen.number, next[seen.producer]++);
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
	while (!is_empty(ring)) {
		struct mark seen = take(ring, 5);
		assert_int_equal(seen.number, next[seen.producer]++);
	}
	printf("interrupted inside %d times, %d records of the handler\n", (int)met_inside,
	       (int)from_handler);
	assert_true(met_inside >= 2000);
	assert_int_equal(next[0], mine);
	assert_int_equal(next[1], from_handler);
	ring_destroy(ring);
}

/* --- sleeping and waking ------------------------------------------------------------- */

#define FOREVER_NS (600 * (int64_t)NS_PER_S)

struct waiter {
	struct ring *ring;
	int64_t timeout_ns;
	pthread_t thread;
	uint32_t tid, returned;
};

static void *wait_in_thread(void *context)
{
	struct waiter *waiter = context;

	__atomic_store_n(&waiter->tid, sys_gettid(), __ATOMIC_RELEASE);
	ring_wait(waiter->ring, waiter->timeout_ns);
	__atomic_store_n(&waiter->returned, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool has_returned(struct waiter *waiter)
{
	return __atomic_load_n(&waiter->returned, __ATOMIC_ACQUIRE) != 0;
}

static void start_waiter(struct waiter *waiter, struct ring *ring, int64_t timeout_ns)
{
	*waiter = (struct waiter){ .ring = ring, .timeout_ns = timeout_ns };
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_in_thread, waiter), 0);
	while (__atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	/* Gives the waiter time to sleep. The result is the same if it does not sleep yet. */
	struct timespec moment = { 0, 20000000 };
	nanosleep(&moment, NULL);
	assert_false(has_returned(waiter));
}

static void test_idle_wakes_at_first_record(void **state)
{
	struct ring *ring = ring_create(1 << 16);
	struct waiter waiter;
	(void)state;

	start_waiter(&waiter, ring, -1);
	assert_true(put(ring, 1, 1, 0, 1));
	pthread_join(waiter.thread, NULL);
	/* There is a record already, so the call does not sleep. */
	ring_wait(ring, -1);
	ring_destroy(ring);
}

static void test_timed_wakes_half_full_only(void **state)
{
	struct ring *ring = ring_create(1 << 16);
	struct waiter waiter;
	(void)state;

	start_waiter(&waiter, ring, FOREVER_NS);
	uint64_t number = 0;
	while (ring_head(ring) - ring_tail(ring) < ring_bytes(ring) / 2 - 256) {
		assert_true(put(ring, 1, number++, 48, 1));
		assert_false(has_returned(&waiter));
	}
	while (ring_head(ring) - ring_tail(ring) < ring_bytes(ring) / 2)
		assert_true(put(ring, 1, number++, 48, 1));
	pthread_join(waiter.thread, NULL);
	ring_destroy(ring);
}

static void test_wake_is_kept(void **state)
{
	struct ring *ring = ring_create(1 << 16);
	struct waiter waiter;
	(void)state;

	start_waiter(&waiter, ring, -1);
	ring_wake(ring);
	pthread_join(waiter.thread, NULL);
	ring_wake(ring); /* no reader sleeps, so the next wait returns immediately */
	assert_true(ring_wait(ring, -1));
	ring_wake(ring);
	assert_true(ring_wait(ring, 0)); /* with its time over, too */
	start_waiter(&waiter, ring, FOREVER_NS);
	ring_wake(ring);
	pthread_join(waiter.thread, NULL);
	ring_destroy(ring);
}

static void test_timeout(void **state)
{
	struct ring *ring = ring_create(1 << 16);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	(void)state;

	assert_true(put(ring, 1, 1, 0, 1)); /* a record alone does not end a timed wait */
	assert_false(ring_wait(ring, 30000000));
	assert_true(clock_ns(CLOCK_MONOTONIC) - start >= 30000000);
	assert_false(ring_wait(ring, 0));
	ring_destroy(ring);
}

/* The number of times that the thread went to sleep. */
static long sleeps_of(pid_t thread)
{
	char path[64], line[128];
	long sleeps = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
	FILE *status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
	fclose(status);
	return sleeps;
}

/* While the oldest record is being written, many later records are committed. They do not wake the consumer,
 * which finds the oldest record after its commit. */
static void test_stalled_writer(void **state)
{
	static const int64_t timeouts[] = { FOREVER_NS, -1 };
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct ring *ring = ring_create(1 << 16);
		struct waiter waiter;
		struct mark *mark = ring_reserve(ring, sizeof(*mark));
		long commits = 0;

		while (ring_head(ring) < ring_bytes(ring) / 2)
			assert_true(put(ring, 1, 1, 0, 1));
		start_waiter(&waiter, ring, timeouts[i]);
		pid_t tid = (pid_t)__atomic_load_n(&waiter.tid, __ATOMIC_ACQUIRE);
		long sleeps = sleeps_of(tid);
		uint64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC);
		for (; put(ring, 1, 1, 0, 1); commits++) {
			struct timespec pause = { 0, 100000 }; /* time to fall asleep again */
			nanosleep(&pause, NULL);
		}
		sleeps = sleeps_of(tid) - sleeps;
		elapsed_ns = clock_ns(CLOCK_MONOTONIC) - elapsed_ns;
		printf("%ld commits behind a stalled one, %ld sleeps\n", commits, sleeps);
		assert_true(commits > 1000);
		/* The consumer looks each 32 ms without a wake-up, and more often at first. */
		assert_true(sleeps < commits / 4 + (long)(elapsed_ns / 32000000));
		assert_false(has_returned(&waiter));
		mark->producer = mark->number = 9;
		ring_commit(ring, mark, 1);
		pthread_join(waiter.thread, NULL);
		assert_int_equal(take(ring, 1).number, 9);
		ring_destroy(ring);
	}
}

/* A pipeline in which the consumer always sleeps without a limit. A lost wake-up would make it hang. */
static void *produce_slowly(void *context)
{
	struct producer *self = context;

	for (self->stored = 0; self->stored < 20000;) {
		if (put(self->ring, self->id, self->stored, 8, 5))
			self->stored++;
		if (self->stored % 3 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_no_lost_wakeup(void **state)
{
	struct ring *ring = ring_create(RING_MIN_BYTES);
	struct producer producers[2];
	uint64_t received = 0;
	(void)state;

	for (uint64_t i = 0; i < 2; i++) {
		producers[i] = (struct producer){ .ring = ring, .id = i };
		pthread_create(&producers[i].thread, NULL, produce_slowly, &producers[i]);
	}
	while (received < 2 * 20000) {
		ring_wait(ring, -1);
		while (!is_empty(ring)) {
			take(ring, 5);
			received++;
		}
	}
	for (int i = 0; i < 2; i++)
		pthread_join(producers[i].thread, NULL);
	ring_destroy(ring);
}

/* --- fork ------------------------------------------------------------------------------ */

static void test_reset_in_child(void **state)
{
	struct ring *ring = ring_create(RING_MIN_BYTES);
	(void)state;

	assert_true(put(ring, 1, 0, 40, 1));
	struct mark *open = ring_reserve(ring, sizeof(*open)); /* of "another thread" */
	assert_non_null(open);
	/* The parent leaves bytes there that look like a record at each place. */
	uint64_t *rest = ring_reserve(ring, RING_MIN_BYTES / 2 - 8);
	for (size_t i = 0; i < RING_MIN_BYTES / 16 - 1; i++)
		rest[i] = 1ull << 63 | 1ull << 32 | 8;
	uint64_t head = ring_head(ring);

	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int bad = 0;
		ring_reset_in_child(ring);
		bad |= !is_empty(ring) || ring_tail(ring) != head || ring_dropped(ring) != 0;
		for (uint64_t i = 0; i < 1000 && !bad; i++) {
			unsigned kind;
			size_t size;
			bad |= !put(ring, 2, i, i % 200, 3);
			struct mark *mark = ring_peek(ring, &kind, &size);
			bad |= mark == NULL || mark->number != i || size != sizeof(*mark) + i % 200;
			ring_consume(ring);
			bad |= !is_empty(ring);
		}
		_exit(bad);
	}
	int status = -1;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	/* The parent's ring has not changed. */
	assert_int_equal(take(ring, 1).number, 0);
	assert_true(is_empty(ring));
	open->producer = open->number = 4;
	ring_commit(ring, open, 1);
	assert_int_equal(take(ring, 1).number, 4);
	ring_destroy(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_largest_record),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_commit_order),
		cmocka_unit_test(test_producers_tiny_ring),
		cmocka_unit_test(test_producers_large_records),
		cmocka_unit_test(test_producers_roomy_ring),
		cmocka_unit_test(test_self_interruption),
		cmocka_unit_test(test_idle_wakes_at_first_record),
		cmocka_unit_test(test_timed_wakes_half_full_only),
		cmocka_unit_test(test_wake_is_kept),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_stalled_writer),
		cmocka_unit_test(test_no_lost_wakeup),
		cmocka_unit_test(test_reset_in_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
