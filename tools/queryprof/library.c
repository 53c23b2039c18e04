#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool library_find(const char *name, char *path)
{
	static const char *const folders[] = { ".", QUERYPROF_LIBDIR };
	char us[PATH_MAX], tried[3 * PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", us, sizeof(us) - 1);

	while (size > 0 && us[size - 1] != '/')
		size--;
	if (size <= 0)
		return false;
	us[size] = 0;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(tried, sizeof(tried), "%s%s/%s", us, folders[i], name);
		if (access(tried, R_OK) == 0 && realpath(tried, path))
			return true;
	}
	return false;
}
