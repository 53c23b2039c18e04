/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close_range() (Linux 5.9) makes a new table and empties it in one step. So there is never a second
 * descriptor of a host's pipe, whose reader would wait until that is closed. If the call is refused,
 * unshare() copies the table first, and the copies are closed one by one.
 *
 * An epoll descriptor, which cannot be written to, occupies each number that must not be used. Files are not
 * opened first and then moved to a higher number, because closing the lower one would drop the process's
 * locks of that file.
 */
#include "store/file/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in older headers. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

/* A sanitizer writes its reports to descriptor 2. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIRST_CLOSED 3u
#else
#define FIRST_CLOSED 0u
#endif

/* No process has descriptors beyond this, whatever the limit. */
#define LIMIT_MAX (1 << 20)

#define FIRST_LEAST 256
#define FIRST_MOST 16384 /* the kernel's table has 8 bytes for each number */
#define OURS 64          /* descriptors that the store may have open */
#define NEEDED 8         /* the least that it needs */

/* The lowest free number in the newest flusher's table. 0: it has no table of its own. */
static long first;

static long limit_now(void)
{
	struct rlimit limit = { .rlim_cur = OURS };

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur < LIMIT_MAX ? (long)limit.rlim_cur : LIMIT_MAX;
}

/* If the limit is low, the store uses the upper half of the numbers. */
static long first_within(long limit, long wanted)
{
	const long most = limit - (limit < 2 * OURS ? limit / 2 : OURS);

	return wanted < most ? wanted : most;
}

/* The number of entries in the kernel's table of the calling thread; the host has never had a higher
 * descriptor. */
static long size_of_table(void)
{
	char text[4096];
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *line;

	if (fd >= 0)
		close(fd);
	text[size < 0 ? 0 : size] = '\0';
	line = strstr(text, "\nFDSize:");
	return line ? strtol(line + strlen("\nFDSize:"), NULL, 10) : 0;
}

/* By a bare system call, because a sanitizer attributes these numbers to the host. */
static void close_copies(void)
{
	struct rlimit limit = { .rlim_max = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit); /* it may be lower than when the descriptors were opened */
	if (limit.rlim_max > LIMIT_MAX)
		limit.rlim_max = LIMIT_MAX;
	for (rlim_t fd = FIRST_CLOSED; fd < limit.rlim_max; fd++)
		syscall(SYS_close, (int)fd);
}

/* At an abort(), the C library writes to the standard descriptors. That message must not reach a file of the
 * store either. */
static int occupy_numbers(long below)
{
	long one = syscall(SYS_epoll_create1, EPOLL_CLOEXEC), fd = one;

	if (one < 0)
		return errno;
	while (fd >= 0 && fd < below - 1)
		fd = syscall(SYS_fcntl, one, F_DUPFD_CLOEXEC, 0);
	first = below;
	return 0;
}

int descriptors_separate(void)
{
	const long twice = 2 * size_of_table();
	const long wanted = twice < FIRST_LEAST ? FIRST_LEAST : twice > FIRST_MOST ? FIRST_MOST : twice;
	const long below = first_within(limit_now(), wanted);

	first = 0;
	if (syscall(SYS_close_range, FIRST_CLOSED, ~0u, CLOSE_RANGE_UNSHARE)) {
		if (unshare(CLONE_FILES))
			return errno;
		close_copies();
	}
	return occupy_numbers(below);
}

void descriptors_fit_limit(void)
{
	const long now = first ? first_within(limit_now(), first) : 0;

	for (; first > now && first > STDERR_FILENO + 1; first--)
		syscall(SYS_close, first - 1);
}
