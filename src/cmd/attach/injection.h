/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a running process load the recorder and call it, on one of its threads and a stack of its own.
 *
 * A child of the command does it, which no signal of a terminal reaches and which ends within seconds. So the
 * command may be killed at any moment. One thread is stopped, and the others run.
 */
#ifndef QUERYPROF_CMD_ATTACH_INJECTION_H
#define QUERYPROF_CMD_ATTACH_INJECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/attach/target.h"
#include "wire/attach_request.h"

struct injection {
	uint32_t is_done;
	uint32_t tries;      /* threads that were stopped */
	uint64_t stopped_ns; /* that one thread was stopped, */
	uint64_t looked_ns;  /* and that others were, which were not used */
	char sentence[SENTENCE_SIZE];
};

/* Calls the recorder of the process with the request; `library`: the recorder's file, which is loaded if the
 * process has none. False: it is not done, and the sentence says why. */
bool injection_run(struct injection *injection, const struct target *target, const char *library,
                   const struct attach_request *request);

#endif
