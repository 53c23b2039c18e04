/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opendir(), readdir() and their like.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "system/call.h"

struct __dirstream {
	int fd;
	long at, end;
	/* As the kernel writes it, which is as libc has it. */
	char entries[32768] __attribute__((aligned(__alignof__(struct dirent))));
};

DIR *opendir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *folder = fd >= 0 ? malloc(sizeof(*folder)) : NULL;

	if (folder) {
		folder->fd = fd;
		folder->at = folder->end = 0;
	} else if (fd >= 0) {
		close(fd);
		errno = ENOMEM;
	}
	return folder;
}

struct dirent *readdir(DIR *folder)
{
	struct dirent *entry;

	if (folder->at == folder->end) {
		long size = CALL(SYS_getdents64, folder->fd, folder->entries, sizeof(folder->entries));

		folder->at = 0;
		folder->end = size > 0 ? size : 0;
		if (size <= 0)
			return NULL;
	}
	entry = (struct dirent *)(folder->entries + folder->at);
	folder->at += entry->d_reclen;
	return entry;
}

int dirfd(DIR *folder)
{
	return folder->fd;
}

int closedir(DIR *folder)
{
	int fd = folder->fd;

	free(folder);
	return close(fd);
}
