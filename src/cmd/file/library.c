/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool library_find(const char *name, char *path)
{
	static const char *const folders[] = { ".", QUERYPROF_LIBDIR };
	char command[PATH_MAX], folder[2 * PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", command, sizeof(command) - 1);

	while (size > 0 && command[size - 1] != '/')
		size--;
	if (size <= 0)
		return false;
	command[size] = 0;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(folder, sizeof(folder), "%s%s", command, folders[i]);
		/* The name itself is not resolved, because it may be a link to a versioned file. */
		if (!realpath(folder, path) || strlen(path) + strlen(name) + 2 > PATH_MAX)
			continue;
		strcat(strcat(path, "/"), name);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}
