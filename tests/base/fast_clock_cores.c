/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast clock on a simulated processor whose cores have different counters, or counters with different
 * rates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static uint64_t fake_ticks(void);
static uint32_t fake_core(void);
static bool fake_invariant(void);
#define QUERYPROF_TEST_TICKS fake_ticks
#define QUERYPROF_TEST_CORE fake_core
#define QUERYPROF_TEST_INVARIANT fake_invariant
#define QUERYPROF_TEST_SOURCES sources
static const char *sources;
#include "base/fast_clock.c"

#define CORES 4
#define TICKS_OF_NS 2
#define SECOND 1000000000ll

/* Counters that differ by less than a reading's precision, and by hours. */
static const int64_t skews[CORES] = { 0, 300000, 700000, 7200 * SECOND };
static uint32_t core;
static bool is_steady = true;

/* The number of readings after which the thread moves to another core, which is the worst moment. 0: it
 * stays. */
static unsigned move_after;
static bool is_visit; /* the thread returns to the first core after it has read the counter */

static uint64_t fake_ticks(void)
{
	uint64_t ticks;

	if (move_after && !--move_after)
		core = (core + 1) % CORES;
	ticks = TICKS_OF_NS * (clock_ns(CLOCK_MONOTONIC) + SECOND) + (uint64_t)skews[core];
	if (is_visit)
		core = 0;
	is_visit = false;
	return ticks;
}

static uint32_t fake_core(void)
{
	return core;
}

static bool fake_invariant(void)
{
	return is_steady;
}

static int new_process(void **unused)
{
	(void)unused;
	fast_clock_scale = fast_clock_reach = 0;
	state = UNKNOWN;
	core = 0;
	move_after = 0;
	is_steady = true;
	sources = "/nowhere"; /* as in a sandbox that hides it */
	return 0;
}

#define CLOSE_NS 1000

/* Uninterrupted readings agree with the kernel's time on any core. No reading goes back. */
static void read_for(struct fast_clock *clock, uint64_t ns, unsigned stay)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), newest = 0, readings = 0, after = start;

	while (after - start < ns) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), now = fast_clock_ns(clock);

		after = clock_ns(CLOCK_MONOTONIC);
		assert_true(now >= newest);
		newest = now;
		if (after - before < 2 * CLOSE_NS) {
			assert_true(now + CLOSE_NS > before);
			assert_true(now < after + CLOSE_NS);
		}
		if (stay && ++readings % stay == 0)
			core = (core + 1) % CORES;
	}
}

/* Reads until the rate is measured. The thread may lose its processor for a long time. */
static void read_until_measured(struct fast_clock *clock, unsigned stay)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND;

	while (!fast_clock_scale && clock_ns(CLOCK_MONOTONIC) < limit)
		read_for(clock, 10000000, stay);
	assert_string_equal(fast_clock_source(), "the processor's counter");
}

static void cores_are_corrected(void **unused)
{
	struct fast_clock clock = { .ns = 0 };

	(void)unused;
	read_until_measured(&clock, 0);
	read_for(&clock, 200000000, 7);
	read_for(&clock, 100000000, 1);
	assert_string_equal(fast_clock_source(), "the processor's counter");
	assert_in_range(fast_clock_scale, (1ull << 31) / 1000 * 999, (1ull << 31) / 1000 * 1001);
}

/* The thread moves between the steps of one reading. */
static void moves_at_any_moment(void **unused)
{
	struct fast_clock clock = { .ns = 0 };

	(void)unused;
	read_until_measured(&clock, 0);
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t before, now, after;

		move_after = i % 6;
		if (!move_after) {
			core = 0;
			fast_clock_ns(&clock);
			core = 1;
			is_visit = true;
		}
		before = clock_ns(CLOCK_MONOTONIC);
		now = fast_clock_ns(&clock);
		after = clock_ns(CLOCK_MONOTONIC);
		if (after - before < 2 * CLOSE_NS)
			assert_true(now + CLOSE_NS > before && now < after + CLOSE_NS);
	}
	assert_string_equal(fast_clock_source(), "the processor's counter");
}

/* The thread also moves while the rate is measured. The rate must not contain the cores' difference. */
static void may_begin_on_any_core(void **unused)
{
	struct fast_clock clock = { .ns = 0 };

	(void)unused;
	read_until_measured(&clock, 3);
	assert_in_range(fast_clock_scale, (1ull << 31) / 1000 * 999, (1ull << 31) / 1000 * 1001);
}

/* The thread never returns to its first core. */
static void may_leave_the_first_core(void **unused)
{
	struct fast_clock clock = { .ns = 0 };

	(void)unused;
	fast_clock_ns(&clock);
	core = 1;
	read_until_measured(&clock, 0);
	assert_int_equal(first.core, 1);
}

static void falls_back_without_an_invariant_counter(void **unused)
{
	struct fast_clock clock = { .ns = 0 };

	(void)unused;
	is_steady = false;
	read_for(&clock, 50000000, 5);
	assert_int_equal(fast_clock_scale, 0);
	assert_non_null(strstr(fast_clock_source(), "does not run at one rate"));
}

/* The test writes the kernel's list to a file of its own. */
static void goes_by_the_kernels_word(void **unused)
{
	static const struct {
		const char *list;
		bool has_counter;
	} kernels[] = { { "kvm-clock tsc acpi_pm \n", true },
		        { "tsc", true },
		        { "kvm-clock \n", true },
		        { "hyperv_clocksource_tsc_page acpi_pm \n", false },
		        { "hpet acpi_pm \n", false } };
	char path[] = "/tmp/queryprof-clocks-XXXXXX";
	int file = mkstemp(path);

	(void)unused;
	sources = path;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		struct fast_clock clock = { .ns = 0 };
		size_t size = strlen(kernels[i].list);

		assert_int_equal(ftruncate(file, 0), 0);
		assert_int_equal(pwrite(file, kernels[i].list, size, 0), size);
		state = UNKNOWN;
		fast_clock_scale = 0;
		errno = EINTR;
		fast_clock_ns(&clock);
		assert_int_equal(errno, EINTR);
		assert_int_equal(state, kernels[i].has_counter ? CALIBRATING : DISTRUSTED);
	}
	close(file);
	unlink(path);
	read_for(&(struct fast_clock){ .ns = 0 }, 50000000, 5);
	assert_int_equal(fast_clock_scale, 0);
	assert_non_null(strstr(fast_clock_source(), "does not trust"));
}

/* An interruption prevents the comparison that would detect the fast counter, so the times returned are
 * ahead. */
static void a_fast_counter_is_noticed_late(void **unused)
{
	struct fast_clock clock = { .ns = 0 };
	uint64_t start;

	(void)unused;
	read_until_measured(&clock, 0);
	while (state != USED)
		read_for(&clock, 10000000, 0);
	fast_clock_compare(&clock);
	fast_clock_scale *= 2;
	clock.ns = clock.newest = clock.ns + 5000000;
	start = clock_ns(CLOCK_MONOTONIC);
	while (fast_clock_scale && clock_ns(CLOCK_MONOTONIC) - start < 60 * SECOND)
		fast_clock_ns(&clock);
	assert_string_equal(fast_clock_source(), "the kernel: the processor's counter went astray");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cores_are_corrected, new_process),
		cmocka_unit_test_setup(moves_at_any_moment, new_process),
		cmocka_unit_test_setup(may_begin_on_any_core, new_process),
		cmocka_unit_test_setup(may_leave_the_first_core, new_process),
		cmocka_unit_test_setup(falls_back_without_an_invariant_counter, new_process),
		cmocka_unit_test_setup(goes_by_the_kernels_word, new_process),
		cmocka_unit_test_setup(a_fast_counter_is_noticed_late, new_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
