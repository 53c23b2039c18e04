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

/* "+123 ", without stdio: a child that was just forked comes here, too. */
static size_t write_head(char head[16], enum mark mark)
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
	struct stat status;
	int error = errno;
	int fd = name && *name == '/' ? open(name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd < 0) {
		errno = error;
		return;
	}
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size < MARKS_MAX) {
		char head[16];
		struct iovec line[] = { { head, write_head(head, mark) },
			                { (void *)text, strnlen(text, PIPE_BUF) },
			                { (void *)"\n", 1 } };

		while (writev(fd, line, 3) < 0 && errno == EINTR)
			;
	}
	close(fd);
	errno = error;
}
