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

/* There is one copy, with its counter in a register. With a counter in memory, the rates of two inlined
 * copies differed by a factor of 1.8 on a Zen 4, which forwarded only one of them from its stores. */
__attribute__((noinline, unused)) static void spin_rounds(uint64_t rounds)
{
	while (rounds--)
		__asm__ volatile("" : "+r"(rounds));
}

#define SPIN_TRIAL 1000000 /* some 0.3 ms */

/* The most rounds per ns of several trials. Slower trials were disturbed. */
static double spin_rate;

/* Runs before the program starts threads. Takes the best of 40 trials, because five trials within one ms had
 * half of the rate on a busy machine. */
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

/* Uses about this much of the thread's CPU time. */
static inline void spin(uint64_t cpu_ns)
{
	spin_rounds((uint64_t)((double)cpu_ns * spin_rate));
}

#endif
