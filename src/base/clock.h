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

#endif
