/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_headroom.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/task_file.h"

#define SHARE 8 /* the host has the other seven parts */

struct usage {
	unsigned long long size, data; /* bytes; 0: not known */
};

/* "size resident shared text 0 data 0", in pages. */
static struct usage usage_now(void)
{
	unsigned long long fields[6] = { 0 };
	char line[200] = "", *at = line;

	task_file_read_process("statm", line, sizeof(line));
	for (int i = 0; i < 6; i++)
		fields[i] = strtoull(at, &at, 10);
	return (struct usage){ fields[0] * (unsigned long)sysconf(_SC_PAGESIZE),
		               fields[5] * (unsigned long)sysconf(_SC_PAGESIZE) };
}

static bool suffices(int resource, unsigned long long used, size_t bytes, const char *what, char *why)
{
	struct rlimit limit;
	unsigned long long left;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
	if (bytes <= left / SHARE)
		return true;
	snprintf(why, MEMORY_SENTENCE_SIZE,
	         "%llu of the %llu MiB of %s are left; queryprof needs %zu MiB, and takes an eighth of the "
	         "rest at most",
	         left >> 20, (unsigned long long)limit.rlim_cur >> 20, what, bytes >> 20);
	return false;
}

bool memory_has_headroom(size_t bytes, char why[MEMORY_SENTENCE_SIZE])
{
	const struct usage usage = usage_now();

	return suffices(RLIMIT_AS, usage.size, bytes, "address space (ulimit -v)", why) &&
	       suffices(RLIMIT_DATA, usage.data, MEMORY_OF_DATA, "data (ulimit -d)", why);
}
