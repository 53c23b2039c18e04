/*
 * Runs a function one instruction at a time and unwinds at each of them.
 *
 * The truth is a shadow stack kept from the calls and returns that are seen, on
 * top of the callers that glibc's backtrace() tells before the first step. Shortly
 * before a jump out of several functions the truth may as well be where it leads. A
 * trace that says so is kept until the jump has been made, and compared with the shadow
 * stack as it is then.
 */
#ifndef TESTS_UNWIND_STEP_H
#define TESTS_UNWIND_STEP_H

#include <stdint.h>

struct step_result {
	uint64_t steps;
	uint64_t exact;
	uint64_t incomplete;   /* what is told is right, and marked truncated */
	uint64_t jumping;      /* those of the exact ones that told where longjmp or an
	                        * exception lands, before it did; it then landed there */
	uint64_t wrong;        /* anything else */
	uint64_t memo_differs; /* with the memo it came out different */
	uint64_t deepest;
};

/* Steps through work(argument). The first few failures are printed, each place
 * once. */
void step_run(const char *name, void (*work)(void *argument), void *argument, struct step_result *result);

#endif
