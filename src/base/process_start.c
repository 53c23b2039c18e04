/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_start.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/task_file.h"

/* Start of the process by the kernel's account. The clocks move against each other, so the
 * caller reads it once a process. */
int64_t process_start_ns(void)
{
	unsigned long long ticks;
	char text[1024];
	char *behind_name;
	int64_t start, up;

	start = (int64_t)clock_ns(CLOCK_REALTIME);
	up = (int64_t)clock_ns(CLOCK_BOOTTIME);
	if (!task_file_read_process("stat", text, sizeof(text))) /* without malloc(), in a forked child */
		return start;
	behind_name = strrchr(text, ')'); /* the name may hold anything */
	if (!behind_name ||
	    sscanf(behind_name + 1,
	           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	           &ticks) != 1)
		return start;
	return start - up + (int64_t)(ticks * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK)));
}
