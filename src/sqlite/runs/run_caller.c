/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/run_caller.h"

#include <stdlib.h>

#include "interpreter/call_stack.h"

/* Of a place in the table of runs, which keeps it. */
struct run_caller {
	struct query_key run;
	size_t size;
	char bytes[CALL_STACK_BYTES];
};

static bool is_of_run(const struct run_caller *caller, const struct run *run)
{
	return caller && caller->run.hi == run->query.key.hi && caller->run.lo == run->query.key.lo;
}

void run_caller_read(struct run *run)
{
	struct run_caller *caller = run->caller;

	if (run->own || is_of_run(caller, run))
		return;
	if (!caller)
		run->caller = caller = malloc(sizeof(*caller));
	if (!caller)
		return;
	caller->run = run->query.key;
	caller->size = call_stack_read(caller->bytes);
}

size_t run_caller(const struct run *run, const char **bytes)
{
	if (!is_of_run(run->caller, run))
		return 0;
	*bytes = run->caller->bytes;
	return run->caller->size;
}
