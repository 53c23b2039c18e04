/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: nanosleep() returns immediately, and the monotonic clock advances as if it had slept. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
#define SEEN __attribute__((visibility("default")))

static _Atomic long long slept_ns;

SEEN int nanosleep(const struct timespec *asked, struct timespec *left)
{
	(void)left;
	slept_ns += asked->tv_sec * SECOND_NS + asked->tv_nsec;
	return 0;
}

SEEN int clock_gettime(clockid_t clock, struct timespec *now)
{
	int code = (int)syscall(SYS_clock_gettime, clock, now);

	if (code == 0 && clock == CLOCK_MONOTONIC) {
		long long nanoseconds = now->tv_nsec + slept_ns;

		now->tv_sec += nanoseconds / SECOND_NS;
		now->tv_nsec = nanoseconds % SECOND_NS;
	}
	return code;
}
