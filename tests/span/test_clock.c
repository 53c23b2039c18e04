/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of spans agrees with the kernel's on a thread that moves from core to core.
 * QUERYPROF_TEST_CLOCK_SECONDS sets the duration. The default is a few seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fast_clock.h"

#define OFF_NS 1000  /* tolerance */
#define WIDE_NS 2000 /* if the kernel's two readings differ more, the thread was interrupted */

static void move_to(int core)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(core, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		fail_msg("core %d", core);
}

static int cores(int *list, int most)
{
	cpu_set_t set;
	int count = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int core = 0; core < CPU_SETSIZE && count < most; core++)
		if (CPU_ISSET(core, &set))
			list[count++] = core;
	return count;
}

static void is_the_kernels_clock(void **state)
{
	const char *given = getenv("QUERYPROF_TEST_CLOCK_SECONDS");
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (given ? strtoull(given, NULL, 10) : 2) * NS_PER_S;
	uint64_t readings = 0, judged = 0, newest = 0, most = 0, back = 0;
	struct fast_clock clock = { .ns = 0 };
	int list[64], count = cores(list, 64), core = 0;

	(void)state;
	while (clock_ns(CLOCK_MONOTONIC) < end) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), now = fast_clock_ns(&clock),
			 after = clock_ns(CLOCK_MONOTONIC), off;

		if (++readings % 4096 == 0)
			move_to(list[++core % count]);
		if (now < newest && newest - now > back)
			back = newest - now;
		newest = now;
		if (after - before > WIDE_NS)
			continue;
		off = now < before ? before - now : now > after ? now - after : 0;
		most = off > most ? off : most;
		judged++;
	}
	printf("%llu readings, %llu judged on %d cores; at most %llu ns off, %llu ns back; %s\n",
	       (unsigned long long)readings, (unsigned long long)judged, count, (unsigned long long)most,
	       (unsigned long long)back, fast_clock_scale ? "the processor's counter" : "the kernel's clock");
	assert_true(judged > 1000);
	assert_in_range(most, 0, OFF_NS);
	assert_int_equal(back, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(is_the_kernels_clock) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
