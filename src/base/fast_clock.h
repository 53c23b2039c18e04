/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLOCK_MONOTONIC for those who read it at both ends of every call: from the processor's
 * counter where that is invariant, at half the price of the kernel's way.
 *
 * The counter is compared with the kernel's clock once a millisecond, so its rate need not be
 * known better than to some millionths; that is measured over the process's first 20 ms. In the
 * first two of them the kernel's clock is read, then the two are compared ten times as often. A
 * counter that goes astray (a virtual machine that moved)
 * is not used any more. Async-signal-safe.
 */
#ifndef QUERYPROF_BASE_FAST_CLOCK_H
#define QUERYPROF_BASE_FAST_CLOCK_H

#include <stdint.h>

/* Where both were read last; of one thread. Begins as zeroes. */
struct fast_clock {
	uint64_t ticks, ns;
};

/* ns of a tick, times 2^32; 0: the counter is not used. Atomic, as is the next: the ticks for
 * which a reading of both is good. */
extern uint64_t fast_clock_scale __attribute__((visibility("hidden")));
extern uint64_t fast_clock_reach __attribute__((visibility("hidden")));

static inline uint64_t fast_clock_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* Reads both. */
uint64_t fast_clock_compare(struct fast_clock *clock);

/* The time now. May be some ns earlier than at the last reading: a difference of two can be
 * negative. */
static inline uint64_t fast_clock_ns(struct fast_clock *clock)
{
	/* Relaxed: a scale is as good as the one before. */
	uint64_t scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED), ticks;

	if (__builtin_expect(!scale, 0))
		return fast_clock_compare(clock);
	ticks = fast_clock_ticks() - clock->ticks;
	if (__builtin_expect(ticks >= __atomic_load_n(&fast_clock_reach, __ATOMIC_RELAXED), 0))
		return fast_clock_compare(clock);
	return clock->ns + (ticks * scale >> 32);
}

#endif
