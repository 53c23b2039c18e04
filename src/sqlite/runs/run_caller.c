/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/run_caller.h"

#include <stdlib.h>

#include "interpreter/call_stack.h"

/* malloc'ed; runs_free() frees it, too. */
struct run_caller {
	size_t size;
	char bytes[CALL_STACK_BYTES];
};

void run_caller_read(struct run *run)
{
	if (run->caller || run->is_queryprofs || !run->settings.log)
		return;
	run->caller = malloc(sizeof(*run->caller));
	if (run->caller)
		run->caller->size = call_stack_read(run->caller->bytes);
}

size_t run_caller(const struct run *run, const char **bytes)
{
	if (!run->caller)
		return 0;
	*bytes = run->caller->bytes;
	return run->caller->size;
}

void run_caller_forget(struct run *run)
{
	free(run->caller);
	run->caller = NULL;
}
