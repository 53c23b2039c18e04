/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines for `queryprof record`. Also compiled into the preload, which has nothing else of
 * the library: many processes have no SQLite.
 */
#include "entry/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/signal_hold.h"

#define HEAD_MAX 16

/* "+123 ", without stdio: a child that was just forked comes here, too. */
static size_t write_head(char head[HEAD_MAX], enum mark mark)
{
	char digits[12];
	size_t count = 0, size = 0;

	for (unsigned pid = (unsigned)getpid(); pid || !count; pid /= 10)
		digits[count++] = (char)('0' + pid % 10);
	head[size++] = (char)mark;
	while (count)
		head[size++] = digits[--count];
	head[size++] = ' ';
	return size;
}

void mark_leave(enum mark mark, const char *text)
{
	const char *name = secure_getenv("QUERYPROF_RECORD");
	int error = errno, fd = -1;
	struct stat status;

	/* Refused where the command has ended. */
	if (name && *name == '/')
		fd = open(name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &status) && S_ISFIFO(status.st_mode)) {
		char head[HEAD_MAX];
		struct iovec line[] = { { head, write_head(head, mark) },
			                { (void *)text, strnlen(text, PIPE_BUF - HEAD_MAX - 1) },
			                { (void *)"\n", 1 } };
		struct signal_hold hold = signal_hold(SIGPIPE);
		ssize_t written;

		while ((written = writev(fd, line, 3)) < 0 && errno == EINTR)
			;
		signal_release(&hold, written < 0 && errno == EPIPE);
	}
	if (fd >= 0)
		close(fd);
	errno = error;
}
