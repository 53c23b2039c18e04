/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference between the wall clock and the monotonic clock. Both clocks are simulated, and the thread
 * may lose its processor at any reading.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

#define READING_NS 20
#define SWITCH_NS 4000000

static const uint64_t first_offset = 1795000000ull * NS_PER_S;
static uint64_t now_ns, wall_offset;
static unsigned readings, switch_at, switches;

/* Each reading takes time, and some are interrupted before the clock is read. */
static int fake_clock(clockid_t clock, struct timespec *time)
{
	if (readings >= switch_at && readings < switch_at + switches)
		now_ns += SWITCH_NS * (1 + readings); /* never the same twice */
	readings++;
	now_ns += READING_NS;
	*time = timespec_of_ns(clock == CLOCK_REALTIME ? now_ns + wall_offset : now_ns);
	return 0;
}

static void read_offset(uint64_t before)
{
	uint64_t offset;

	readings = 0;
	offset = clock_offset_ns(before);
	assert_in_range(offset, wall_offset, wall_offset + 2 * OFFSET_AGREE_NS);
}

static void is_told_despite_switches(void **unused)
{
	(void)unused;
	wall_offset = first_offset;
	for (switches = 0; switches < 4; switches++)
		for (switch_at = 0; switch_at < 12; switch_at++) {
			read_offset(0);
			read_offset(wall_offset + READING_NS);
		}
}

/* Simulates that somebody sets the wall clock. */
static void follows_the_wall_clock(void **unused)
{
	(void)unused;
	switches = 1;
	for (switch_at = 0; switch_at < 12; switch_at++) {
		uint64_t before = wall_offset + READING_NS;

		wall_offset = switch_at % 2 ? first_offset : first_offset - 3600 * NS_PER_S;
		read_offset(before);
	}
}

/* One reading of each clock suffices if nothing has changed. */
static void is_read_once(void **unused)
{
	(void)unused;
	switches = 0;
	read_offset(wall_offset + READING_NS);
	assert_int_equal(readings, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_told_despite_switches),
		cmocka_unit_test(follows_the_wall_clock),
		cmocka_unit_test(is_read_once),
	};

	clock_in_vdso = fake_clock;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
