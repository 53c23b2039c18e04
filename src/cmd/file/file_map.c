/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/file_map.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

void *file_map(const char *path, struct stat *status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *file = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_size > 0)
		file = mmap(NULL, (size_t)status->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return file == MAP_FAILED ? NULL : file;
}
