/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close_range() (Linux 5.9) makes the table and empties it in one step: at no moment is there a
 * second descriptor of a host's pipe, whose reader would wait for its end. If it is refused,
 * unshare() copies the table first, and the copies are closed individually.
 *
 * An epoll descriptor, which cannot be written, occupies each number that must not be used. A file is
 * not opened first and then moved to a higher number, because closing the lower one would drop the
 * process's locks of that file.
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

/* Older headers know neither. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

/* A sanitizer reports on descriptor 2. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIRST_CLOSED 3u
#else
#define FIRST_CLOSED 0u
#endif

/* No process has descriptors beyond this, whatever the limit. */
#define LIMIT_MAX (1 << 20)

#define FIRST_LEAST 256
#define FIRST_MOST 16384 /* the kernel's table has 8 bytes for each number */
#define OURS 64          /* that the store may have */
#define NEEDED 8         /* that it has at least */

/* The lowest free number in the table of the newest flusher. 0: it has no table of its own. */
static long first;

static long limit_now(void)
{
	struct rlimit limit = { .rlim_cur = OURS };

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur < LIMIT_MAX ? (long)limit.rlim_cur : LIMIT_MAX;
}

/* Of a low limit the store has the upper half. */
static long first_within(long limit, long wanted)
{
	const long most = limit - (limit < 2 * OURS ? limit / 2 : OURS);

	return wanted < most ? wanted : most;
}

/* How many numbers the kernel's table of the calling thread has room for: more than the host has had yet. */
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

/* By the bare call, because a sanitizer considers these numbers the host's. */
static void close_copies(void)
{
	struct rlimit limit = { .rlim_max = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit); /* the lower one may have come after the descriptors */
	if (limit.rlim_max > LIMIT_MAX)
		limit.rlim_max = LIMIT_MAX;
	for (rlim_t fd = FIRST_CLOSED; fd < limit.rlim_max; fd++)
		syscall(SYS_close, (int)fd);
}

/* The C library's message to the standard descriptors at an abort() must not reach a file of the
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
