/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU clock of short calls, on a processor that other threads also want. Kernel and processor are
 * simulated, so the test knows how much each call used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "base/clock.h"
#include "query/cpu_clock.h"
#include "../lib/seed.h"

#define CALLS 100000
#define TICK_NS 4000000
#define READING_NS 30
#define SYSTEM_CALL_NS 300

static struct {
	uint64_t wall_ns, cpu_ns;
	long switches, readings; /* readings: of the number of switches */
	uint64_t random;
} machine;

/* The thread's area for restartable sequences. */
static __thread struct {
	int32_t numbers[2];
	uint64_t pointer;
} area;

static uint64_t random_up_to(uint64_t most)
{
	machine.random ^= machine.random << 13;
	machine.random ^= machine.random >> 7;
	machine.random ^= machine.random << 17;
	return machine.random % (most + 1);
}

static void compute(uint64_t ns)
{
	machine.wall_ns += ns;
	machine.cpu_ns += ns;
}

static void lose_processor(uint64_t ns)
{
	machine.wall_ns += ns;
	machine.switches++;
	area.pointer = 0;
}

/* Replace the kernel's functions, by the linker's --wrap. */
int __wrap_getrusage(int who, struct rusage *usage);
int __wrap_prctl(int option, ...);

static int read_clock(clockid_t clock, struct timespec *now)
{
	compute(clock == CLOCK_THREAD_CPUTIME_ID ? SYSTEM_CALL_NS : READING_NS);
	switch (clock) {
	case CLOCK_THREAD_CPUTIME_ID: *now = timespec_of_ns(machine.cpu_ns); break;
	case CLOCK_MONOTONIC: *now = timespec_of_ns(machine.wall_ns); break;
	case CLOCK_MONOTONIC_COARSE: *now = timespec_of_ns(machine.wall_ns / TICK_NS * TICK_NS); break;
	case CLOCK_REALTIME: *now = timespec_of_ns(machine.wall_ns + NS_PER_S); break;
	default: fail_msg("clock %d", (int)clock);
	}
	return 0;
}

int __wrap_getrusage(int who, struct rusage *usage)
{
	assert_int_equal(who, RUSAGE_THREAD);
	compute(SYSTEM_CALL_NS);
	machine.readings++;
	*usage = (struct rusage){ .ru_nivcsw = machine.switches };
	return 0;
}

/* Forbids to read the processor's counter, so that the fast clock uses the kernel's clock. */
int __wrap_prctl(int option, ...)
{
	(void)option;
	return -1;
}

static struct thread thread;

static int start(void **state)
{
	(void)state;
	clock_in_vdso = read_clock;
	thread = (struct thread){ .id = 1 };
	machine.wall_ns = NS_PER_S;
	machine.cpu_ns = NS_PER_S / 2;
	machine.switches = machine.readings = 0;
	switch_flag_area = 0;
	machine.random = test_seed(7001);
	return 0;
}

static uint64_t begin_call(void)
{
	uint64_t now = fast_clock_ns(&thread.clock);

	if (!cpu_clock_is_valid(&thread, now)) {
		cpu_clock_before(&thread, NULL);
		now = fast_clock_ns(&thread.clock);
	}
	return cpu_clock_estimate(&thread, now);
}

static uint64_t end_call(void)
{
	uint64_t now = fast_clock_ns(&thread.clock);

	return cpu_clock_is_valid(&thread, now) ? cpu_clock_estimate(&thread, now) : cpu_clock_now(&thread);
}

/* Calls of 4 us, 1 us apart. In one of `per_turn` calls another thread takes the processor for at most
 * `turn_ns`; in one of four times as many gaps, too, because a gap is a quarter as long. The sum of the calls
 * must equal their CPU time, and the clock must never go back. */
static void run_calls(uint64_t per_turn, uint64_t turn_ns)
{
	uint64_t sum = 0, truth = 0, newest = 0;

	for (int i = 0; i < CALLS; i++) {
		uint64_t from = begin_call(), cpu_ns = machine.cpu_ns, to;

		compute(2000);
		if (random_up_to(per_turn - 1) == 0)
			lose_processor(random_up_to(turn_ns));
		compute(2000);
		truth += machine.cpu_ns - cpu_ns;
		to = end_call();
		assert_true(from >= newest && to >= from);
		newest = to;
		sum += to - from;
		compute(500);
		if (random_up_to(4 * per_turn - 1) == 0)
			lose_processor(random_up_to(turn_ns));
		compute(500);
	}
	/* Reading the clock takes some of each call's time. */
	print_message("one turn of %ju ns in %ju: %.4f\n", (uintmax_t)turn_ns, (uintmax_t)per_turn,
	              (double)sum / (double)truth);
	assert_in_range(sum, truth - truth / 100, truth + truth / 50);
}

static void test_nothing_beside(void **state)
{
	(void)state;
	run_calls(CALLS * 10, 0);
}

/* The turns are shorter than an estimate's validity, so only the next reading detects them. */
static void test_turns_that_no_call_can_notice(void **state)
{
	(void)state;
	run_calls(10, 8000);
}

static void test_turns_of_up_to_50_us(void **state)
{
	(void)state;
	run_calls(20, CPU_CLOCK_VALID_NS);
}

static void test_turns_of_milliseconds(void **state)
{
	(void)state;
	run_calls(200, 8000000);
}

/* Each reading asks the kernel. Calls and gaps that are longer than CPU_CLOCK_NEAR_NS need one in about
 * CPU_CLOCK_VALID_NS, but a thread that has flags needs one after a switch and in each CPU_CLOCK_LONG_NS. */
static void test_turn_that_the_flag_shows(void **state)
{
	uint64_t sum = 0, truth = 0, start;

	(void)state;
	switch_flag_area = (char *)&area - (char *)__builtin_thread_pointer();
	start = machine.wall_ns;
	for (int i = 0; i < CALLS; i++) {
		uint64_t from = begin_call(), cpu_ns = machine.cpu_ns;

		compute(20000);
		if (random_up_to(99) == 0)
			lose_processor(random_up_to(8000000));
		compute(20000);
		truth += machine.cpu_ns - cpu_ns;
		sum += end_call() - from;
		compute(30000);
		if (random_up_to(99) == 0)
			lose_processor(1000);
	}
	print_message("%ld readings, %ld switches: %.4f\n", machine.readings, machine.switches,
	              (double)sum / (double)truth);
	assert_in_range(sum, truth - truth / 100, truth + truth / 100);
	assert_in_range(machine.readings, machine.switches,
	                2 * machine.switches + (long)((machine.wall_ns - start) / CPU_CLOCK_LONG_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_beside, start),
		cmocka_unit_test_setup(test_turns_that_no_call_can_notice, start),
		cmocka_unit_test_setup(test_turns_of_up_to_50_us, start),
		cmocka_unit_test_setup(test_turns_of_milliseconds, start),
		cmocka_unit_test_setup(test_turn_that_the_flag_shows, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
