/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses CPU time without reading the clock. The kernel accounts the time at each reading of a CPU clock, so a
 * thread that reads it all the time tends to end its turn right before the tick, which then hits another
 * thread. With two busy processes, such a thread had one tick instead of twenty, and all of their periods
 * went to the work after it.
 */
#ifndef TESTS_LIB_SPIN_H
#define TESTS_LIB_SPIN_H

#include <stdint.h>
#include <time.h>

/* One copy, in a register: with a counter in memory, two inlined copies had rates that differed by
 * 1.8 on a Zen 4, as the processor had one of them forwarded from its stores and not the other. */
__attribute__((noinline, unused)) static void spin_rounds(uint64_t rounds)
{
	while (rounds--)
		__asm__ volatile("" : "+r"(rounds));
}

#define SPIN_TRIAL 1000000 /* some 0.3 ms */

/* The most rounds in a ns of several tries: the others were disturbed. */
static double spin_rate;

/* Before there are threads. The best of some ms: five trials in one had half of the rate, on a machine
 * that others used. */
__attribute__((constructor)) static void spin_calibrate(void)
{
	for (int i = 0; i < 40; i++) {
		struct timespec from, to;
		double ns;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		spin_rounds(SPIN_TRIAL);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
		if (SPIN_TRIAL / ns > spin_rate)
			spin_rate = SPIN_TRIAL / ns;
	}
}

/* About so much of the thread's CPU time. */
static inline void spin(uint64_t cpu_ns)
{
	spin_rounds((uint64_t)((double)cpu_ns * spin_rate));
}

#endif
