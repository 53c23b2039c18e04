/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that is stopped in the middle of a query, for the debugger to look at.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "queryprof.h"

int main(void)
{
	const qp_query query = { .size = sizeof query,
		                 .text = "a query of the debugger's",
		                 .database = "none" };
	struct timespec now;

	if (qp_init(NULL) || qp_query_begin(&query))
		return 1;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while (now.tv_sec == 0 && now.tv_nsec < 200000000);
	raise(SIGABRT);
	return 0;
}
