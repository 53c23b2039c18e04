/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a recording when the host confines itself by seccomp (hook/confine.h).
 *
 * Where the filter forbids what the store's threads call, they end before it is installed. Under `record` the
 * command stores from then on what comes to the ring; elsewhere nothing is recorded any more. Where the
 * handler could not return, all timers stop. All other calls that are forbidden are left out, one by one.
 */
#ifndef QUERYPROF_RECORDER_CONFINED_H
#define QUERYPROF_RECORDER_CONFINED_H

#include <stdbool.h>

/* What recorder/process.c does for it. */
struct confined_process {
	bool (*is_running)(void); /* the process is sampled; one that is recorded is from here on */
	void (*stop)(void);
	void (*start_again)(void);
};

/* Once; the structure stays. */
void confined_follow(const struct confined_process *process);

/* Why nothing can be recorded in this process; NULL: it can. */
const char *confined_refusal(void);

/* What the filter leaves out, a text that stays; NULL: nothing. */
const char *confined_sentence(void);

#endif
