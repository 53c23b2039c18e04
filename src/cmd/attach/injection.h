/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a running process load the recorder and call it, on one of its threads and a separate stack.
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
	uint64_t stopped_ns; /* how long the thread that made the call was stopped, */
	uint64_t looked_ns;  /* and the longest stop of any other thread */
	char sentence[SENTENCE_SIZE];
};

/* Calls the recorder of the process with the request. Loads the recorder's file, `library`, if the process
 * does not have it. False: the call failed, with the reason in `sentence`. */
bool injection_run(struct injection *injection, const struct target *target, const char *library,
                   const struct attach_request *request);
