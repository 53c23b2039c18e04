/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that are made at the end of a run add up to the delays of any length.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/wait.h"
#include "collect/sample_reader.h"
#include "store/write/delays.h"

#define PERIOD_NS 1000000u
#define RUNS 20000
#define SEED 4711u

static const struct sample_field *field_of(const union delay_sample *sample, size_t size, uint32_t tag)
{
	const void *at = sample->record.addresses, *end = (const char *)sample + size;
	const struct sample_field *field;

	for (uint32_t i = 0; i < sample->record.fields && (field = sample_field_next(&at, end)); i++)
		if (field->tag == tag)
			return field;
	return NULL;
}

static void check_sample(const union delay_sample *sample, size_t size, const struct query_record *query,
                         int kind)
{
	const struct sample_field *value = field_of(sample, size, FIELD_VALUE),
				  *wait = field_of(sample, size, FIELD_WAIT);
	const struct wait_field *of = (const void *)wait->content;

	assert_true(size <= sizeof(*sample));
	assert_int_equal(sample->record.depth, 0);
	assert_int_equal(*(const int64_t *)value->content, (int64_t)sample->record.weight * PERIOD_NS);
	assert_int_equal(of->cause, kind == 0 ? WAIT_RUN_QUEUE : WAIT_PAGE_FAULT);
	assert_int_equal(of->ns, kind == 0 ? query->account.run_delay_ns : query->rest_ns);
	assert_int_equal(sample->record.query.lo, query->query.lo);
	assert_int_equal(sample->record.timestamp_ns, query->start_realtime_ns + query->duration_ns);
}

static void test_sums(void **state)
{
	struct delays delays = { .due_ns = { 0 } };
	uint64_t sums[DELAYS] = { 0 }, sampled[DELAYS] = { 0 };

	(void)state;
	printf("  seed %u\n", SEED);
	srandom(SEED);
	for (int run = 0; run < RUNS; run++) {
		struct query_record query = {
			.query = { 1, (uint64_t)random() },
			.start_realtime_ns = 1000,
			.duration_ns = 500,
			.off_cpu_period_ns = PERIOD_NS,
			.account = { .run_delay_ns = (uint64_t)random() % (run % 100 ? 50000 : 30000000),
			             .major_faults = run % 2 },
			.rest_ns = (uint64_t)random() % 3000000,
			.labels = { run % 3, run % 5 },
		};
		sums[0] += query.account.run_delay_ns;
		sums[1] += query.account.major_faults ? query.rest_ns : 0;
		for (int kind = 0; kind < DELAYS; kind++) {
			union delay_sample sample;
			size_t size = delays_sample(&delays, kind, &query, &sample);

			/* A delay of a whole period has a sample. */
			assert_true(size || (kind == 0 ? query.account.run_delay_ns
			                               : query.rest_ns * (run % 2)) < PERIOD_NS);
			if (!size)
				continue;
			check_sample(&sample, size, &query, kind);
			sampled[kind] += (uint64_t)sample.record.weight * PERIOD_NS;
		}
	}
	for (int kind = 0; kind < DELAYS; kind++)
		assert_true(llabs((long long)(sums[kind] - sampled[kind])) <= PERIOD_NS);
}

/* If a wait is shorter than a period, its length in periods is its chance of a sample. */
static void test_first(void **state)
{
	int sampled = 0;

	(void)state;
	srandom(SEED);
	for (int i = 0; i < RUNS; i++) {
		struct delays delays = { .due_ns = { 0 } };
		const struct query_record query = { .query = { 1, (uint64_t)random() },
			                            .off_cpu_period_ns = PERIOD_NS,
			                            .account = { .run_delay_ns = PERIOD_NS / 4 } };
		union delay_sample sample;

		sampled += delays_sample(&delays, 0, &query, &sample) != 0;
	}
	/* Five standard errors, at a chance of 1/4. */
	assert_true(abs(sampled - RUNS / 4) <= 5 * 61);
}

static void test_off(void **state)
{
	const struct query_record query = { .account = { .run_delay_ns = 5000000 } };
	struct delays delays = { .due_ns = { 0 } };
	union delay_sample sample;

	(void)state;
	assert_int_equal(delays_sample(&delays, 0, &query, &sample), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
