/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's functions of the process, its environment and its clocks.
 */
#include <sched.h>
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

/* Arguments that were not given are registers and a word of the stack with anything in them: the kernel does
 * not read those either. */
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

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	return CALL(SYS_getrandom, bytes, size, flags);
}

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

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	return (int)CALL(SYS_prlimit64, 0, resource, NULL, limit);
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	return (int)CALL(SYS_getrusage, who, usage);
}

int unshare(int flags)
{
	return (int)CALL(SYS_unshare, flags);
}

int sched_yield(void)
{
	return (int)CALL(SYS_sched_yield);
}

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

int clock_getres(clockid_t clock, struct timespec *resolution)
{
	return (int)CALL(SYS_clock_getres, clock, resolution);
}

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

int nanosleep(const struct timespec *time, struct timespec *left)
{
	return (int)CALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, time, left);
}

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
