/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the application called SQLite for a run: the call stack of its language
 * (interpreter/call_stack.h) at the end of the first call in which the run had a sample, or else of
 * its last call. A reset is not used, because it may come from a destructor far from the query.
 */
#pragma once

#include "base/hot_path.h"
#include "sqlite/runs/runs.h"

/* In a call of the host that works for the run and owns it, after SQLite has returned. */
COLD_PATH void run_caller_read(struct run *run);

/* The run's record has it. */
void run_caller_forget(struct run *run);

/* The bytes of wire/call_frame.h; 0: not known. Valid until it is forgotten. */
size_t run_caller(const struct run *run, const char **bytes);

/* After a row: whether it is to be read. */
HOT_INLINE bool run_caller_is_due(const struct run *run)
{
	return __builtin_expect(query_has_samples(&run->query), 0) && !run->caller;
}
