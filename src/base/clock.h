/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of the kernel's clocks as nanoseconds. Async-signal-safe; errno is kept.
 *
 * libc's clock_gettime() is not called, because a host may have loaded one of its own before libc's
 * (libfaketime), whose times are not the kernel's, and which may take a lock that the thread holds.
 * The clock read here is the one by which the kernel waits, also in a time namespace.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/of_recorder.h"
#include "base/own_calls.h"

#define NS_PER_S 1000000000ull

static inline struct timespec timespec_of_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

static inline uint64_t ns_of_timespec(struct timespec time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* The function of the vdso, which the kernel maps into each process; it makes the system call for
 * clocks that it cannot read itself. 0 or -errno. NULL: there is no vdso (valgrind hides it), or
 * it was not searched yet. Tests replace it by other clocks. */
typedef int clock_function(clockid_t clock, struct timespec *now);
ADDRESS_OF_RECORDER(clock_function *, clock_in_vdso);
#ifdef QUERYPROF_REST
#define clock_in_vdso (*clock_in_vdso_address())
#else
extern clock_function *clock_in_vdso __attribute__((visibility("hidden")));
#endif

/* False: the clock cannot be read. */
static inline bool clock_read(clockid_t clock, struct timespec *now)
{
	/* Relaxed: it is written once, before the process has threads. */
	clock_function *in_vdso = __atomic_load_n(&clock_in_vdso, __ATOMIC_RELAXED);
	int before;
	bool is_read;

	/* The vdso reads the others itself. */
	if ((clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID || clock < 0) &&
	    own_call_is_forbidden(SYS_clock_gettime))
		return false;
	if (__builtin_expect(in_vdso != NULL, 1))
		return in_vdso(clock, now) == 0;
	before = errno;
	is_read = syscall(SYS_clock_gettime, clock, now) == 0;
	errno = before;
	return is_read;
}

/* 0: the clock cannot be read. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_read(clock, &now) ? ns_of_timespec(now) : 0;
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

/* CLOCK_REALTIME - CLOCK_MONOTONIC; `before`: the previous value, 0: not known. A thread may lose
 * its processor between the two clocks, so a reading that does not agree with the previous one is
 * repeated. */
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
