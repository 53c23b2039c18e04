/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a running process load the recorder and call it, on one of its threads and a stack of its own.
 *
 * A child of the command does this. No signal of a terminal reaches it, and it ends within seconds, so the
 * command may be killed at any moment. It stops one thread while the others run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/attach/target.h"
#include "wire/attach_request.h"

struct injection {
	uint32_t is_done;
	uint32_t tries;      /* threads that were stopped */
	uint64_t stopped_ns; /* how long the thread that ran the call was stopped, */
	uint64_t looked_ns;  /* and the longest stop of a thread that was not used */
	char sentence[SENTENCE_SIZE];
};

/* Calls the recorder of the process with the request. Loads the recorder's file, `library`, if the process
 * has none. False: it failed, for the reason in `sentence`. */
bool injection_run(struct injection *injection, const struct target *target, const char *library,
                   const struct attach_request *request);
