/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/file_limit.h"

#include <sys/resource.h>

void file_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
