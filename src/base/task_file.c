/* SPDX-License-Identifier: Apache-2.0 */
#include "base/task_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
	int cancel = cancel_hold(), fd;
	ssize_t length = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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
	char folder[32];

	snprintf(folder, sizeof(folder), "self/task/%u", thread_id);
	return read_file(folder, name, text, size);
}

bool task_file_read_own(const char *name, char *text, size_t size)
{
	return read_file("thread-self", name, text, size);
}

bool task_file_read_process(const char *name, char *text, size_t size)
{
	return read_file("self", name, text, size);
}

bool task_file_read_other(uint32_t process_id, const char *name, char *text, size_t size)
{
	char folder[32];

	snprintf(folder, sizeof(folder), "%u", process_id);
	return read_file(folder, name, text, size);
}

char task_file_state(const char *stat)
{
	const char *name_end = strrchr(stat, ')'); /* the name may hold anything */

	return name_end && name_end[1] ? name_end[2] : 0;
}
