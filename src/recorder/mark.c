/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines for `queryprof record`. Also compiled into the preload, which contains nothing else of
 * the library, because many processes have no SQLite.
 */
#include "recorder/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/signal_hold.h"

#define HEAD_MAX 16

/* "+123 ", without stdio, because it also runs in a child that was just forked. */
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

static bool is_plain; /* atomic */

void mark_plainly(void)
{
	__atomic_store_n(&is_plain, true, __ATOMIC_RELAXED);
}

static ssize_t write_line(int fd, const char *line, size_t size)
{
	struct signal_hold hold;
	ssize_t written;

	if (__atomic_load_n(&is_plain, __ATOMIC_RELAXED))
		return write(fd, line, size);
	hold = signal_hold(SIGPIPE);
	while ((written = write(fd, line, size)) < 0 && errno == EINTR)
		;
	signal_release(&hold, written < 0 && errno == EPIPE);
	return written;
}

bool mark_write(enum mark mark, const char *text)
{
	const char *name = environment_value("QUERYPROF_RECORD");
	int error = errno, fd = -1;
	bool is_left = false;
	struct stat status;

	/* Refused where the command has ended. */
	if (name && *name == '/')
		fd = open(name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &status) && S_ISFIFO(status.st_mode)) {
		char line[PIPE_BUF];
		size_t head = write_head(line, mark), size = strnlen(text, sizeof(line) - HEAD_MAX - 1);

		memcpy(line + head, text, size);
		line[head + size] = '\n';
		is_left = write_line(fd, line, head + size + 1) > 0;
	}
	if (fd >= 0)
		close(fd);
	errno = error;
	return is_left;
}
