/* SPDX-License-Identifier: Apache-2.0 */
#include "base/filters.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/task_file.h"

/* The number after the name; -1: the file has no such line. */
static int field(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? (int)strtol(line + strlen(name), NULL, 10) : -1;
}

int filters_here(void)
{
	char status[4096];
	int count;

	task_file_read_own("status", status, sizeof(status));
	count = field(status, "\nSeccomp_filters:");
	if (count < 0) /* Linux before 5.9 */
		count = field(status, "\nSeccomp:") > 0;
	return count;
}

bool filters_are_unseen(int seen)
{
	const char *of_command = environment_value(FILTERS_VARIABLE);

	return of_command && filters_here() > atoi(of_command) + seen;
}
