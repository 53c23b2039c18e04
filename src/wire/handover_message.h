/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message by which a process hands its memory over to `queryprof record` (handover/handover.h).
 */
#pragma once

#include <stdint.h>

#define HANDOVER_KEY_SIZE 32

/* The last one may be missing. */
enum handover_descriptor { HANDOVER_RING, HANDOVER_PROCESS, HANDOVER_DESCRIPTORS };

struct handover_message {
	char key[HANDOVER_KEY_SIZE];
	uint64_t sent_ns; /* of CLOCK_BOOTTIME: if a process with its number began later, the sender has ended
	                   */
};
