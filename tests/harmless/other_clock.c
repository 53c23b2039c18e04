/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: the program's clocks jump by two days in both directions, stop, run backwards, or run ten
 * times as fast, depending on OTHER_CLOCK. Like libfaketimeMT, it locks a mutex for each reading.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define S_NS 1000000000ll
#define DAY_NS (86400 * S_NS)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t first_ns;

static int64_t kernel_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	syscall(SYS_clock_gettime, clock, &now);
	return now.tv_sec * S_NS + now.tv_nsec;
}

static int64_t shown_ns(clockid_t clock)
{
	const char *how = getenv("OTHER_CLOCK");
	int64_t is = kernel_ns(clock), monotonic = kernel_ns(CLOCK_MONOTONIC), passed;

	pthread_mutex_lock(&mutex);
	if (!first_ns)
		first_ns = monotonic;
	passed = monotonic - first_ns;
	usleep(1); /* long enough for a fork or a signal in the meantime */
	pthread_mutex_unlock(&mutex);
	if (!how)
		return is;
	if (!strcmp(how, "jumps"))
		return is + (passed / 10000000 % 2 ? DAY_NS : 3 * DAY_NS);
	if (!strcmp(how, "stands still"))
		return is - passed;
	if (!strcmp(how, "runs backwards"))
		return is - 2 * passed;
	return is + 9 * passed;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t ns = shown_ns(clock);

	*now = (struct timespec){ ns / S_NS, ns % S_NS };
	return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	int64_t ns = shown_ns(CLOCK_REALTIME);

	(void)zone;
	*now = (struct timeval){ ns / S_NS, ns % S_NS / 1000 };
	return 0;
}

time_t time(time_t *now)
{
	time_t seconds = shown_ns(CLOCK_REALTIME) / S_NS;

	if (now)
		*now = seconds;
	return seconds;
}
