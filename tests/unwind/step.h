/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function one instruction at a time, and unwinds at each instruction.
 *
 * The reference is a shadow stack of the calls and returns seen so far, on top of the callers that glibc's
 * backtrace() reports before the first step. In longjmp's last instructions the unwind information already
 * describes the target's frame. Such a trace is kept until the jump, and compared with the shadow stack
 * after it.
 */
#ifndef TESTS_UNWIND_STEP_H
#define TESTS_UNWIND_STEP_H

#include <stdint.h>

struct step_result {
	uint64_t steps;
	uint64_t exact;
	uint64_t incomplete;   /* the frames are right, but the trace is marked truncated */
	uint64_t jumping;      /* exact traces that named longjmp's target before the jump */
	uint64_t wrong;        /* anything else */
	uint64_t memo_differs; /* the trace is different with the memo */
	uint64_t deepest;
};

/* Steps through work(argument). Prints the first few failures, each place once. */
void step_run(const char *name, void (*work)(void *argument), void *argument, struct step_result *result);

#endif
