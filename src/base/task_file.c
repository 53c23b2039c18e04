/* SPDX-License-Identifier: Apache-2.0 */
#include "base/task_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cancel.h"

static bool read_file(const char *path, char *text, size_t size)
{
	ssize_t length = -1;
	int cancel = cancel_hold(), fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		length = read(fd, text, size - 1);
		close(fd);
	}
	cancel_release(cancel);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

bool task_file_read(uint32_t thread_id, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", thread_id, name);
	return read_file(path, text, size);
}

bool task_file_read_process(const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", name);
	return read_file(path, text, size);
}
