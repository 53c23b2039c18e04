/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By the kernel: SQLite counts its memory only with SQLITE_CONFIG_MEMSTATUS, which costs each allocation a
 * lock, and most of what a command needs it allocates itself. RLIMIT_DATA and not RLIMIT_AS: mapped files
 * are no burden. The memory of sanitizers is.
 */
#include "cmd/ui/memory_limit.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit before;
static bool is_set;

void memory_limit_set(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (pages <= 0 || size <= 0 || getrlimit(RLIMIT_DATA, &before) != 0)
		return;
	limit = (struct rlimit){ (rlim_t)pages / 2 * (rlim_t)size, before.rlim_max };
	if (limit.rlim_cur < before.rlim_cur)
		is_set = setrlimit(RLIMIT_DATA, &limit) == 0;
#endif
}

void memory_limit_lift(void)
{
	if (is_set)
		setrlimit(RLIMIT_DATA, &before);
}
