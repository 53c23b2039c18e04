/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as nanoseconds. Async-signal-safe.
 */
#ifndef QUERYPROF_BASE_CLOCK_H
#define QUERYPROF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000ull

static inline struct timespec timespec_of_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

static inline uint64_t ns_of_timespec(struct timespec time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* 0: the clock cannot be read. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) == 0 ? ns_of_timespec(now) : 0;
}

/* The CPU clock of a thread of this process, as <linux/posix-timers.h> numbers it: pthread_getcpuclockid()
 * wants a pthread_t, which may be gone. */
static inline clockid_t clock_of_thread(uint32_t thread_id)
{
	const unsigned per_thread_scheduler_clock = 6;

	return (clockid_t)(~thread_id << 3 | per_thread_scheduler_clock);
}

#define OFFSET_AGREE_NS 100
#define OFFSET_READINGS 8

/* CLOCK_REALTIME - CLOCK_MONOTONIC; `before`: what it was the last time, 0: not known. A thread may
 * lose its processor between the two clocks: a reading that does not agree with the one before it
 * is repeated. */
static inline uint64_t clock_offset_ns(uint64_t before)
{
	uint64_t offset = before;

	for (int i = 0; i < OFFSET_READINGS; i++) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		offset = clock_ns(CLOCK_REALTIME) - now;
		if (offset - before + OFFSET_AGREE_NS <= 2 * OFFSET_AGREE_NS)
			break;
		before = offset;
	}
	return offset;
}

#endif
