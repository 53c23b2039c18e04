/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast clock agrees with the kernel's clock, before and after its calibration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fast_clock.h"

#define LASTS_NS 100000000ull
#define CLOSE_NS 2000 /* the most that two readings of one moment may differ */

static void is_the_kernels(void **state)
{
	struct fast_clock clock = { .ns = 0 };
	uint64_t start = clock_ns(CLOCK_MONOTONIC), after = start;

	(void)state;
	while (after - start < LASTS_NS) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), now = fast_clock_ns(&clock);

		after = clock_ns(CLOCK_MONOTONIC);
		assert_true(now + CLOSE_NS > before);
		assert_true(now < after + CLOSE_NS);
	}
}

/* The library stops using a counter that deviates from the kernel's clock. */
static void goes_astray(void **state)
{
	struct fast_clock clock = { .ns = 0 };
	uint64_t start = clock_ns(CLOCK_MONOTONIC),
		 scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED), wrong = 0;

	(void)state;
	if (!scale)
		skip();
	fast_clock_compare(&clock);
	/* A thread that starves between two comparisons cannot use them. A rough rate is measured once more,
	 * which corrects it. */
	for (; scale && clock_ns(CLOCK_MONOTONIC) - start < 60000000000ull;
	     scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED)) {
		if (scale != wrong) {
			wrong = scale * 2;
			__atomic_store_n(&fast_clock_scale, wrong, __ATOMIC_RELAXED);
		}
		fast_clock_ns(&clock);
	}
	assert_int_equal(fast_clock_scale, 0);
	is_the_kernels(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_the_kernels),
		cmocka_unit_test(goes_astray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
