/* SPDX-License-Identifier: Apache-2.0 */
/*
 * O_PATH opens the name and not the file. The file is then opened through that descriptor, because
 * the name may belong to another file by now. It uses the thread's folder in /proc, not the
 * process's, because the store's threads have their own descriptors. Without /proc the name must do,
 * and the opened file is compared.
 */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int open_again(int path_fd, const char *path, const struct stat *status)
{
	char of_thread[48];
	struct stat opened;
	int fd;

	snprintf(of_thread, sizeof(of_thread), "/proc/thread-self/fd/%d", path_fd);
	fd = open(of_thread, FLAGS);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, FLAGS);
	if (fd >= 0 && (fstat(fd, &opened) || !is_same(&opened, status))) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}

int regular_file_open(const char *path, struct stat *status)
{
	int path_fd = open(path, O_PATH | O_CLOEXEC), fd = -1, error;

	if (path_fd < 0)
		return -1;
	if (fstat(path_fd, status) == 0 && !S_ISREG(status->st_mode))
		errno = EINVAL;
	else
		fd = open_again(path_fd, path, status);
	error = errno;
	close(path_fd);
	errno = error;
	return fd;
}

int regular_file_make(const char *path, int flags)
{
	int fd = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    (status.st_uid == geteuid() || status.st_uid == 0))
		return fd;
	if (fd >= 0) {
		close(fd);
		errno = EPERM;
	}
	return -1;
}
