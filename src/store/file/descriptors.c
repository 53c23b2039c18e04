/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close_range() (Linux 5.9) makes the table and empties it in one step: at no moment is
 * there a second descriptor of a host's pipe, whose reader would wait for its end. Where
 * that is refused, unshare() copies the table first; the copies are closed one by one.
 */
#include "store/file/descriptors.h"

#include <errno.h>
#include <sched.h>
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

/* A sanitizer reports on descriptor 2. To ThreadSanitizer one number is one descriptor in
 * all of a process, so the store's must have other numbers than the host's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIRST_CLOSED 3u
#else
#define FIRST_CLOSED 0u
#endif
#ifdef __SANITIZE_THREAD__
#define FIRST_FREE 200
#else
#define FIRST_FREE 3
#endif

/* Beyond this no process has descriptors, whatever the limit says. */
#define LIMIT_MAX (1 << 20)

/* By the bare call: to a sanitizer these numbers are the host's. */
static void close_copies(void)
{
	struct rlimit limit = { .rlim_max = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit); /* the lower one may have come after the descriptors */
	if (limit.rlim_max > LIMIT_MAX)
		limit.rlim_max = LIMIT_MAX;
	for (rlim_t fd = FIRST_CLOSED; fd < limit.rlim_max; fd++)
		syscall(SYS_close, (int)fd);
}

/* The C library's message to the standard descriptors at an abort() must not come to a
 * file of the store: descriptors of this kind cannot be written. */
static int occupy_first_numbers(void)
{
	for (long fd = FIRST_CLOSED; fd < FIRST_FREE; fd++) {
		fd = syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
		if (fd < 0)
			return errno;
	}
	return 0;
}

int descriptors_separate(void)
{
	if (syscall(SYS_close_range, FIRST_CLOSED, ~0u, CLOSE_RANGE_UNSHARE)) {
		if (unshare(CLONE_FILES))
			return errno;
		close_copies();
	}
	return occupy_first_numbers();
}
