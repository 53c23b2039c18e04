/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect on a recording of a host that confines itself by seccomp (hook/confine.h).
 *
 * If the filter forbids calls of the store's threads, they end before it is installed. Under `record`
 * the command stores later records of the ring; otherwise nothing more is recorded. If the handler
 * could not return, all timers stop. All other forbidden calls are omitted individually.
 */
#pragma once

#include <stdbool.h>

/* What recorder/process.c does for it. */
struct confined_process {
	bool (*is_running)(void); /* the process is sampled; one that is recorded is from here on */
	void (*stop)(void);
	void (*start_again)(void);
};

/* Once; the structure stays. */
void confined_follow(const struct confined_process *process);

/* Why nothing can be recorded in this process; NULL: recording is possible. */
const char *confined_refusal(void);

/* What the filter leaves out, a text that stays; NULL: nothing. */
const char *confined_sentence(void);
