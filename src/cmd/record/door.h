/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the processes of a recording arrive, on a thread of its own. It stores nothing, so a process that
 * waits for its memory (handover/handover.h) does not wait for a disk. Nothing that a process does, or leaves
 * undone, makes it wait either.
 */
#ifndef QUERYPROF_CMD_RECORD_DOOR_H
#define QUERYPROF_CMD_RECORD_DOOR_H

#include <stdbool.h>

#include "handover/handover.h"

/* A process that has handed its ring over. */
struct guest {
	int descriptors[HANDOVER_DESCRIPTORS];
	bool is_asked; /* whether it has ended: cmd/record/guest_process.h */
};

void guest_close(struct guest *guest);

/* Makes the sockets, and the environment that names them. False: there is none. */
bool door_open(void);

/* The thread begins, with all signals blocked, in this process: it may be a fork of the one that opened the
 * door. */
void door_begin(void);

/* It ends. Who came before the call is among the guests. */
void door_end(void);

/* Then: nobody comes any more. */
void door_shut(void);

/* Removes what door_open() has made in the file system. */
void door_remove(void);

/* Can be read when guests have come since the last door_take(). */
int door_arrivals(void);

/* Calls `take` for each of them; the descriptors are its. */
void door_take(void (*take)(struct guest *guest));

#endif
