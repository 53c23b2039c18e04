/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's functions of the process, its environment and its clocks.
 */
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "system/call.h"

/* Arguments that were not given are registers and a word of the stack with any content: the kernel
 * does not read those either. */
long system_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long system_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	return call_result(call_kernel(number, a, b, c, d, e, f));
}

pid_t getpid(void)
{
	if (own_call_is_forbidden(SYS_getpid))
		return own_calls_process();
	return (pid_t)CALL_KERNEL(SYS_getpid);
}

pid_t gettid(void)
{
	return (pid_t)CALL_KERNEL(SYS_gettid);
}

uid_t getuid(void)
{
	return (uid_t)CALL_KERNEL(SYS_getuid);
}

uid_t geteuid(void)
{
	return (uid_t)CALL_KERNEL(SYS_geteuid);
}

SYSTEM_CALL(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), SYS_getrandom, bytes, size, flags)

int prctl(int option, ...)
{
	va_list more;
	long of[4];

	va_start(more, option);
	for (int i = 0; i < 4; i++)
		of[i] = va_arg(more, long);
	va_end(more);
	return (int)CALL(SYS_prctl, option, of[0], of[1], of[2], of[3]);
}

#if !defined(__GLIBC__)
typedef int __rlimit_resource_t, __rusage_who_t;
#endif
SYSTEM_CALL(int, getrlimit, (__rlimit_resource_t resource, struct rlimit *limit), SYS_prlimit64, 0, resource,
            NULL, limit)
SYSTEM_CALL(int, getrusage, (__rusage_who_t who, struct rusage *usage), SYS_getrusage, who, usage)
SYSTEM_CALL(int, unshare, (int flags), SYS_unshare, flags)
SYSTEM_CALL(int, sched_yield, (void), SYS_sched_yield)
SYSTEM_CALL(int, sigtimedwait,
            (const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict time),
            SYS_rt_sigtimedwait, set, info, time, 8)

int gethostname(char *name, size_t size)
{
	struct utsname names;

	if (CALL(SYS_uname, &names))
		return -1;
	if (strlen(names.nodename) >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name, names.nodename);
	return 0;
}

/* --- environment ----------------------------------------------------------------------------------- */

char *getenv(const char *name)
{
	const size_t length = strlen(name);

	for (char **each = environ; each && *each; each++)
		if (strncmp(*each, name, length) == 0 && (*each)[length] == '=')
			return *each + length + 1;
	return NULL;
}

char *secure_getenv(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : getenv(name);
}

/* --- clocks ---------------------------------------------------------------------------------------- */

SYSTEM_CALL(int, clock_getres, (clockid_t clock, struct timespec *resolution), SYS_clock_getres, clock,
            resolution)

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec time = { 0 };

	(void)zone;
	if (CALL(SYS_clock_gettime, CLOCK_REALTIME, &time))
		return -1;
	*now = (struct timeval){ .tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *now)
{
	struct timespec time = { 0 };

	CALL_KERNEL(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &time);
	if (now)
		*now = time.tv_sec;
	return time.tv_sec;
}

/* libc's two read a file for the zone, by the host's functions. The days are counted from 1 March 0000, as
 * the day that leap years have is the last one then. */
struct tm *gmtime_r(const time_t *restrict time, struct tm *restrict parts)
{
	long days = *time / 86400, seconds = *time % 86400, era, day, year, month;

	if (seconds < 0) {
		seconds += 86400;
		days--;
	}
	*parts = (struct tm){ .tm_hour = (int)(seconds / 3600),
		              .tm_min = (int)(seconds / 60 % 60),
		              .tm_sec = (int)(seconds % 60),
		              .tm_wday = (int)(((days + 4) % 7 + 7) % 7),
		              .tm_zone = "GMT" };
	days += 719468;
	era = (days < 0 ? days - 146096 : days) / 146097; /* of 400 years */
	day = days - era * 146097;
	year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	parts->tm_mday = (int)(day - (153 * month + 2) / 5 + 1);
	parts->tm_mon = (int)((month + 2) % 12);
	year += era * 400 + (month >= 10);
	parts->tm_year = (int)(year - 1900);
	parts->tm_yday =
		(int)(month >= 10 ? day - 306 : day + 59 + (!(year % 4) && (year % 100 || !(year % 400))));
	return parts;
}

/* No statement of ours requests local time: SQLite reports that it is not known. */
struct tm *localtime_r(const time_t *restrict time, struct tm *restrict parts)
{
	(void)time;
	(void)parts;
	return NULL;
}

SYSTEM_CALL(int, nanosleep, (const struct timespec *time, struct timespec *left), SYS_clock_nanosleep,
            CLOCK_MONOTONIC, 0, time, left)

int usleep(useconds_t us)
{
	const struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000l };

	return nanosleep(&time, NULL);
}

unsigned sleep(unsigned seconds)
{
	struct timespec time = { .tv_sec = seconds };

	return nanosleep(&time, &time) ? (unsigned)time.tv_sec : 0;
}
