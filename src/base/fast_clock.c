/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fast_clock.h"

#include <stdbool.h>
#include <sys/prctl.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/clock.h"

#define CALIBRATION_NS 20000000ull
#define REACH_NS 1000000ull
/* A rate that is known a tenth as well reaches a tenth as far. */
#define ROUGH 10
#define TRIALS 4
#define TRIAL_NS 1000 /* longer than a reading of both takes that nothing interrupts */

uint64_t fast_clock_scale, fast_clock_reach;

/* Atomic. */
static enum state { UNKNOWN, STARTING, CALIBRATING, ROUGHLY, USED, UNUSABLE } state;
static struct fast_clock first; /* written in STARTING */

/* The counter runs at one rate in all states of the processor, and may be read. */
static bool is_invariant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d = 0;
	int mode = PR_TSC_SIGSEGV;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8 && !prctl(PR_GET_TSC, &mode) &&
	       mode == PR_TSC_ENABLE;
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

/* Both of one moment. False: the thread was interrupted between the two, each time. */
static bool read_both(struct fast_clock *best)
{
	uint64_t scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED);
	uint64_t least = UINT64_MAX;

	/* Without a scale the least of them is the measure. */
	for (int trial = 0; trial < TRIALS; trial++) {
		uint64_t before = fast_clock_ticks(), ns = clock_ns(CLOCK_MONOTONIC),
			 took = fast_clock_ticks() - before;

		if (took < least) {
			*best = (struct fast_clock){ before + took / 2, ns };
			least = took;
		}
		if (scale && least * scale >> 32 < TRIAL_NS)
			return true;
	}
	return !scale;
}

static void use(uint64_t scale, bool is_rough)
{
	__atomic_store_n(&fast_clock_reach, ((is_rough ? REACH_NS / ROUGH : REACH_NS) << 32) / scale,
	                 __ATOMIC_RELAXED);
	/* Release: the reach first. A thread that sees the old one compares at once. */
	__atomic_store_n(&fast_clock_scale, scale, __ATOMIC_RELEASE);
	__atomic_store_n(&state, is_rough ? ROUGHLY : USED, __ATOMIC_RELAXED);
}

static void calibrate(const struct fast_clock *now)
{
	uint64_t ns = now->ns - first.ns, ticks = now->ticks - first.ticks;

	if (ns < CALIBRATION_NS / ROUGH)
		return;
	/* Counters of 10 MHz to 10 GHz. A later reading has a longer way to go by, but 2^32 ns. */
	if (ns < UINT32_MAX && ticks > ns / 100 && ticks < ns * 10) {
		use((ns << 32) / ticks, ns < CALIBRATION_NS);
	} else {
		__atomic_store_n(&state, UNUSABLE, __ATOMIC_RELAXED);
		__atomic_store_n(&fast_clock_scale, 0, __ATOMIC_RELAXED);
	}
}

/* Whether the counter has kept pace since the thread's last reading, of late. */
static bool is_astray(const struct fast_clock *before, const struct fast_clock *now)
{
	uint64_t scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED);
	uint64_t passed = now->ns - before->ns, ticks = now->ticks - before->ticks, told;

	if (!before->ns || !scale || passed > 100 * REACH_NS || ticks > UINT32_MAX)
		return false;
	told = ticks * scale >> 32;
	return (told > passed ? told - passed : passed - told) > TRIAL_NS + passed / 100;
}

uint64_t fast_clock_compare(struct fast_clock *clock)
{
	enum state now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	struct fast_clock both;
	bool is_close;
	uint64_t ns;

	if (now == UNUSABLE || now == CALIBRATING) {
		/* Nothing to compare yet, and every reading of the clock comes here. */
		ns = clock_ns(CLOCK_MONOTONIC);
		if (now == UNUSABLE || ns - first.ns < CALIBRATION_NS / ROUGH)
			return ns;
	}
	is_close = read_both(&both);
	if (now == UNKNOWN &&
	    __atomic_compare_exchange_n(&state, &now, STARTING, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		first = both;
		/* Release: with the load above. */
		__atomic_store_n(&state, is_invariant() ? CALIBRATING : UNUSABLE, __ATOMIC_RELEASE);
	} else if (now == CALIBRATING || (now == ROUGHLY && is_close)) {
		calibrate(&both);
	} else if (now == USED && is_close && is_astray(clock, &both)) {
		__atomic_store_n(&state, UNUSABLE, __ATOMIC_RELAXED);
		__atomic_store_n(&fast_clock_scale, 0, __ATOMIC_RELAXED);
	}
	*clock = both;
	return both.ns;
}
