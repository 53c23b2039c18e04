/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLOCK_MONOTONIC for code that reads it at both ends of every call: from the processor's counter if
 * that is invariant and the kernel trusts it, at half the cost of the kernel's way.
 *
 * The counter is compared with the kernel's clock once a millisecond, so its rate need only be known
 * to some millionths; that is measured over the process's first 20 ms. In the first two of them the
 * kernel's clock is used, then the two are compared ten times as often. A counter that drifts (a
 * virtual machine that moved) is no longer used.
 *
 * The counters of two cores need not agree: a comparison is valid only on its core, and a thread that
 * has moved compares again. The kernel writes the core's number into the thread's area for
 * restartable sequences (rseq); without that, a thread that has moved is wrong by the difference
 * between the cores, for at most a millisecond. Async-signal-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hot_path.h"

#define FAST_CLOCK_REACH_NS 1000000ull

/* Where both were read last, on which core, and the newest time that was returned; of one thread.
 * Begins as zeroes. `scale` and `reach` are those below as they were at that reading, so that the time
 * is computed from this structure alone; reach 0: the counter is not used. */
struct fast_clock {
	uint64_t ticks, ns, newest;
	uint64_t scale, reach;
	uint32_t core;
};

/* ns per tick, times 2^32; 0: the counter is not used. Atomic, like the next: the number of ticks
 * for which a reading of both is valid; and the offset of the core's number from the thread
 * pointer. At 0 there is something else, which never changes, so without rseq all cores count as
 * one. */
extern uint64_t fast_clock_scale __attribute__((visibility("hidden")));
extern uint64_t fast_clock_reach __attribute__((visibility("hidden")));
extern ptrdiff_t fast_clock_core_at __attribute__((visibility("hidden")));

static inline uint64_t fast_clock_ticks(void)
{
#if defined(QUERYPROF_TEST_TICKS) /* a test brings a processor of its own */
	return QUERYPROF_TEST_TICKS();
#elif defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

static inline uint32_t fast_clock_core(void)
{
#if defined(QUERYPROF_TEST_CORE)
	return QUERYPROF_TEST_CORE();
#else
	ptrdiff_t at = __atomic_load_n(&fast_clock_core_at, __ATOMIC_RELAXED);
#if defined(__x86_64__)
	uint32_t core;

	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(core) : "r"(at));
	return core;
#else
	return *(const volatile uint32_t *)((const char *)__builtin_thread_pointer() + at);
#endif
#endif
}

/* The number of the processor, less than 0: not known. */
static inline int fast_clock_processor(void)
{
	unsigned number;

	if (__atomic_load_n(&fast_clock_core_at, __ATOMIC_RELAXED))
		return (int)fast_clock_core();
	return syscall(SYS_getcpu, &number, NULL, NULL) ? -1 : (int)number;
}

/* Reads both. */
COLD_PATH uint64_t fast_clock_compare(struct fast_clock *clock);

/* The time now, in `clock->newest`, if the counter is enough. */
static inline bool fast_clock_count(struct fast_clock *clock)
{
	uint64_t ticks;

	if (__builtin_expect(fast_clock_core() != clock->core, 0))
		return false;
	ticks = fast_clock_ticks() - clock->ticks;
	/* The thread may have moved in between. */
	if (__builtin_expect(ticks >= clock->reach || fast_clock_core() != clock->core, 0))
		return false;
	clock->newest = clock->ns + (ticks * clock->scale >> 32);
	return true;
}

/* The time now. It never goes back on one thread. */
static inline uint64_t fast_clock_ns(struct fast_clock *clock)
{
	return __builtin_expect(fast_clock_count(clock), 1) ? clock->newest : fast_clock_compare(clock);
}

/* A moment, to measure the time since it: the counter's value and scale; with scale 0,
 * CLOCK_MONOTONIC. Half the cost of the time. */
struct fast_moment {
	uint64_t at, scale;
};

struct fast_moment fast_clock_moment_slowly(void);

static inline __attribute__((always_inline)) struct fast_moment fast_clock_moment(void)
{
	uint64_t scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED);

	if (__builtin_expect(!scale, 0))
		return fast_clock_moment_slowly();
	return (struct fast_moment){ fast_clock_ticks(), scale };
}

/* ns from the moment to the one when the counter and CLOCK_MONOTONIC were these, to some millionths; 0 if
 * that is before. */
uint64_t fast_clock_between(struct fast_moment from, uint64_t ticks, uint64_t ns);

/* ns up to now. */
uint64_t fast_clock_since(struct fast_moment from);

/* Whether surely less than 1 ms / 2^`halves` has passed. If the counter belongs to another core, and is
 * behind, that is not known. */
static inline bool fast_clock_is_soon(struct fast_moment from, unsigned halves)
{
	const uint64_t reach = __atomic_load_n(&fast_clock_reach, __ATOMIC_RELAXED);

	return __builtin_expect(from.scale != 0, 1) ? fast_clock_ticks() - from.at < reach >> halves
	                                            : fast_clock_since(from) < FAST_CLOCK_REACH_NS >> halves;
}

/* The clock that the time is read from, for people; a static text. */
const char *fast_clock_source(void);
