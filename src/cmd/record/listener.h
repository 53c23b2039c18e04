/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that accepts the processes of a recording. It stores nothing, so a slow disk does not fill the
 * queue of the sockets, from where further processes would be refused. The thread waits for no process.
 */
#pragma once

#include <stdbool.h>

#include "handover/handover.h"

/* A process that has handed its ring over. */
struct guest {
	int descriptors[HANDOVER_DESCRIPTORS];
	bool is_asked; /* whether it has ended: cmd/record/guest_process.h */
};

void guest_close(struct guest *guest);

/* Makes the sockets, and the environment that names them. False: there is none. */
bool listener_open(void);

/* The thread begins, with all signals blocked, in this process, which may be a fork of the one that called
 * listener_open(). */
void listener_begin(void);

/* It ends. Who came before the call is among the guests. */
void listener_end(void);

/* Then: nobody comes any more. */
void listener_shut(void);

/* Removes what listener_open() has made in the file system. */
void listener_remove(void);

/* Can be read when guests have come since the last listener_take(). */
int listener_arrivals(void);

/* Calls `take` for each of them; the descriptors are its. */
void listener_take(void (*take)(struct guest *guest));
