/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time used without a look at the clock. A thread that reads its CPU clock all the time
 * ends its turn there, as the kernel accounts the time then: right before the tick, which
 * finds another thread. With two busy processes beside it, such a thread had one tick where
 * twenty were due, and the periods of all went to what came next.
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
