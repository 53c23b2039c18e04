/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that accepts the processes of a recording. It stores nothing, so a slow disk does not fill the
 * sockets' queue, which would refuse further processes. The thread waits for no process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handover/handover.h"

/* A process that has handed its ring over. */
struct guest {
	int descriptors[HANDOVER_DESCRIPTORS];
	bool is_asked; /* whether it has ended: cmd/record/guest_process.h */
};

void guest_close(struct guest *guest);

/* Makes the sockets, and the environment that names them. False: there is none. */
bool listener_open(void);

/* Starts the thread, with all signals blocked, in this process, which may be a fork of the one that called
 * listener_open(). */
void listener_begin(void);

/* Ends it. Processes that connected before the call are among the guests. */
void listener_end(void);

/* After that: no process can connect. */
void listener_shut(void);

/* Removes what listener_open() has made in the file system. */
void listener_remove(void);

/* Becomes readable when guests have arrived since the last listener_take(). */
int listener_arrivals(void);

/* Calls `take` for each guest; `take` owns the descriptors. */
void listener_take(void (*take)(struct guest *guest));

/* After listener_end(): how many processes, at least, could not hand their rings over since the last call,
 * because this process had no descriptor or memory for them. */
uint64_t listener_lost(void);
