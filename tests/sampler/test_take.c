/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that ordinary code takes at a hooked call, with the real unwinder, while timers of 1 ms fire on
 * both clocks. Each has its type, its value and its caller's stack, and no sample of the timers is lost.
 */
#include "common.h"

#include <errno.h>
#include <string.h>

#include "modules/modules.h"

#define TYPE ((enum sample_type_number)(SAMPLE_TYPES + 3)) /* unknown to the handler */
#define TAKES 20000

static struct ring *ring;
static struct query_run run;
static const void *returns_to_inner, *returns_to_outer;

__attribute__((noinline)) static void take(int64_t value)
{
	returns_to_inner = __builtin_return_address(0);
	errno = 4711;
	assert_true(sampler_record(thread_current, TYPE, value));
	assert_int_equal(errno, 4711);
}

__attribute__((noinline)) static void inner(int64_t value)
{
	volatile int after = 0;

	returns_to_outer = __builtin_return_address(0);
	take(value);
	after++;
}

__attribute__((noinline)) static void outer(int64_t value)
{
	volatile int after = 0;

	inner(value);
	after++;
}

struct seen {
	uint64_t taken, timed, weights;
	int64_t next_value;
};

static void check_taken(const struct sample_record *sample, size_t size, struct seen *seen)
{
	const void *at = sample->addresses + sample->depth, *end = (const char *)sample + size;
	const struct sample_field *field = sample_field_next(&at, end);

	assert_non_null(field);
	assert_int_equal(field->tag, FIELD_VALUE);
	assert_int_equal(field->size, sizeof(int64_t));
	assert_int_equal((int64_t)field->content[0], seen->next_value);
	assert_int_equal(sample->fields, 1);
	assert_int_equal(sample->period_ns, 0);
	assert_int_equal(sample->query.lo, run.key.lo);
	assert_int_equal(sample->flags, 0);
	/* sampler_record(), take(), inner(), outer() */
	assert_true(sample->depth > 4);
	assert_int_equal(sample->addresses[2], (uintptr_t)returns_to_inner - 1);
	assert_int_equal(sample->addresses[3], (uintptr_t)returns_to_outer - 1);
	seen->next_value++;
	seen->taken++;
}

static void drain_all(struct seen *seen)
{
	const void *record;
	unsigned kind;
	size_t size;

	while ((record = ring_peek(ring, &kind, &size))) {
		const struct sample_record *sample = record;
		if (kind == RECORD_SAMPLE && sample->type == TYPE) {
			check_taken(sample, size, seen);
		} else if (kind == RECORD_SAMPLE) {
			assert_int_equal(sample->fields, 0);
			assert_int_equal(sample->period_ns, 1000000);
			seen->timed++;
			seen->weights += sample->weight;
		}
		ring_consume(ring);
	}
}

static void test_take(void **state)
{
	struct thread *thread = sampler_thread();
	struct seen seen = { 0 };
	uint64_t idle;
	(void)state;

	query_start(&run, thread);
	struct query_tag tag = tag_of(&run, 1000000, 1000000);
	assert_false(sampler_record(thread, TYPE, 1)); /* no query runs */
	sampler_push(thread, &tag);
	idle = ledger_read(LEDGER_IDLE);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	for (int64_t i = 0; i < TAKES || seen.timed < 20; i++) {
		outer(i);
		burn(10000);
		drain_all(&seen);
	}
	uint64_t wall = clock_ns(CLOCK_MONOTONIC) - start;
	sampler_pop(thread);
	drain_all(&seen);
	printf("%llu samples taken, %llu of timers in %.3f s\n", (unsigned long long)seen.taken,
	       (unsigned long long)seen.timed, (double)wall / 1e9);
	assert_int_equal(ledger_read(LEDGER_TAKEN), seen.taken);
	assert_int_equal(seen.weights, run.counts.weights[SAMPLE_CPU] + run.counts.weights[SAMPLE_REAL]);
	assert_int_equal(ledger_read(LEDGER_REENTERED), 0);
	/* Wall time is counted in full, except for signals in flight at the end. */
	assert_true(run.counts.weights[SAMPLE_REAL] + 10 > wall / 1000000);
	assert_true(ledger_read(LEDGER_IDLE) - idle < 10);
	assert_ledger();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_take) };

	if (UNDER_TSAN) {
		puts("skipped: ThreadSanitizer delivers signals late");
		return 0;
	}
	ring = ring_create(1 << 20);
	if (ring == NULL || sampler_init(ring) != 0 || modules_init() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
