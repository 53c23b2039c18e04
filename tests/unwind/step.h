/*
 * Runs a function one instruction at a time and unwinds at each of them.
 *
 * The truth is a shadow stack kept from the calls and returns that are seen, on
 * top of the callers that glibc's backtrace() tells before the first step.
 */
#ifndef TESTS_UNWIND_STEP_H
#define TESTS_UNWIND_STEP_H

#include <stdint.h>

struct step_result {
	uint64_t steps;
	uint64_t exact;
	uint64_t incomplete; /* what is told is right, and marked truncated */
	uint64_t jumping;    /* what is told is the stack as it will be: inside longjmp,
	                      * whose unwind information says so, and where an
	                      * exception lands */
	uint64_t wrong;      /* anything else */
	uint64_t memo_differs; /* with the memo it came out different */
	uint64_t deepest;
};

/* Steps through work(argument). The first few failures are printed, each place
 * once. */
void step_run(const char *name, void (*work)(void *argument), void *argument,
              struct step_result *result);

#endif
