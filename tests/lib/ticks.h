/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least number of CPU samples that a thread has with a period of 1 ms. The kernel expires CPU timers at
 * its ticks. Each turn of the thread on a processor gets a sample for each whole tick that it lasts. A turn
 * that ends before the next tick gets none; that happens if a thread of another program wakes on the same
 * processor just before each tick, for example by a timer of 1 ms.
 */
#ifndef TESTS_LIB_TICKS_H
#define TESTS_LIB_TICKS_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static inline double tick_ns(void)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return tick.tv_nsec > 1000000 ? (double)tick.tv_nsec : 1e6;
}

/* The calling thread's turns so far. */
static inline uint64_t turns_of_thread(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw) + 1;
}

/* At most two fifths of the ticks, even if the turns are long. */
static inline double least_samples(double cpu_ns, double turns)
{
	double ticks = cpu_ns / tick_ns(), whole = ticks - turns - 1;

	return whole < 0.4 * ticks ? whole : 0.4 * ticks;
}

#endif
