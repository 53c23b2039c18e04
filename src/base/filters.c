/* SPDX-License-Identifier: Apache-2.0 */
#include "base/filters.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number after the name; -1: the file has no such line. */
static int field(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? (int)strtol(line + strlen(name), NULL, 10) : -1;
}

int filters_here(void)
{
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC), count;
	char status[4096];
	ssize_t size = -1;

	if (fd >= 0) {
		size = read(fd, status, sizeof(status) - 1);
		close(fd);
	}
	status[size > 0 ? size : 0] = '\0';
	count = field(status, "\nSeccomp_filters:");
	if (count < 0) /* Linux before 5.9 */
		count = field(status, "\nSeccomp:") > 0;
	return count;
}

bool filters_are_unseen(int seen)
{
	const char *of_command = secure_getenv(FILTERS_VARIABLE);

	return of_command && filters_here() > atoi(of_command) + seen;
}
