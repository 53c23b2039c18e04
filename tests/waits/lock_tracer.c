/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded, and the reference for file locks. Each request for a lock is a line in the file that
 * QUERYPROF_TEST_LOCKS names: process, last part of the path, type, first byte, bytes, whether it was
 * refused, and the time (CLOCK_MONOTONIC, ns) before and after the kernel's answer.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Returns the last part of the path. */
static const char *name_of(int fd, char path[4096])
{
	char link[64];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, 4095);
	path[size > 0 ? size : 0] = 0;
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static void write_line(const char *line, size_t size)
{
	const char *path = getenv("QUERYPROF_TEST_LOCKS");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0 || write(fd, line, size) != (ssize_t)size)
		abort();
	close(fd);
}

static int traced(int fd, int command, void *argument)
{
	static int (*real)(int, int, ...);
	const struct flock *lock = argument;
	char line[512], path[4096];
	int64_t before, after;
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
	if (command != F_SETLK)
		return real(fd, command, argument);
	before = now_ns();
	result = real(fd, command, argument);
	after = now_ns();
	write_line(line, (size_t)snprintf(
				 line, sizeof(line), "lock %d %s %s %jd %jd %d %" PRId64 " %" PRId64 "\n",
				 getpid(), name_of(fd, path),
				 lock->l_type == F_UNLCK   ? "unlock"
				 : lock->l_type == F_RDLCK ? "shared"
							   : "exclusive",
				 (intmax_t)lock->l_start, (intmax_t)lock->l_len, result != 0, before, after));
	return result;
}

__attribute__((visibility("default"))) int fcntl(int fd, int command, ...);
__attribute__((visibility("default"))) int fcntl64(int fd, int command, ...);

int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return traced(fd, command, argument);
}

int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return traced(fd, command, argument);
}
