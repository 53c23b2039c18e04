/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_start.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/task_file.h"

/* By the text of its file stat. The clocks move against each other, so the caller reads it once a process. */
static bool parse_start(const char *stat, int64_t *start_ns)
{
	const int64_t now = (int64_t)clock_ns(CLOCK_REALTIME), up = (int64_t)clock_ns(CLOCK_BOOTTIME);
	const char *behind_name = strrchr(stat, ')'); /* the name may hold anything */
	unsigned long long ticks;

	if (!behind_name ||
	    sscanf(behind_name + 1,
	           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	           &ticks) != 1)
		return false;
	*start_ns = now - up + (int64_t)(ticks * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK)));
	return true;
}

int64_t process_start_ns(void)
{
	int64_t start = (int64_t)clock_ns(CLOCK_REALTIME);
	char text[1024];

	if (task_file_read_process("stat", text, sizeof(text))) /* without malloc(), in a forked child */
		parse_start(text, &start);
	return start;
}

bool process_start_of(uint32_t process_id, int64_t *start_ns)
{
	char text[1024];

	return task_file_read_other(process_id, "stat", text, sizeof(text)) && parse_start(text, start_ns);
}
