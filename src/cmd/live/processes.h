/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that are recorded at this moment, found and read from outside.
 *
 * The command that records a process has descriptors of the shared memory (handover/shared_ring.h) and of the
 * trace file. /proc shows both, so a second command needs nothing from the first one or from the process: it
 * opens the memory once more, for reading only, and copies it. No process stops or waits, and nothing is
 * written. The kernel permits this to the user of these commands, and to root. The memory may contain
 * anything, so shared_ring_copy_open() checks every size in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"
#include "handover/shared_ring.h"

struct live_process {
	pid_t pid;        /* as this command sees it */
	uint64_t inode;   /* of its memory */
	bool is_open;     /* `shared` is open; otherwise it cannot be read, or has another version */
	bool is_there;    /* at the newest look */
	uint32_t changed; /* runs and transactions that began or ended while they were read */
	uint64_t at_ns;   /* CLOCK_MONOTONIC, of the newest look */
	struct shared_ring shared;
};

struct live {
	pid_t pid;              /* only this process; 0: all processes that write to the file */
	char *path;             /* the trace file that they are recorded to */
	uint64_t device, inode; /* of that file */
	VECTOR(struct live_process) processes;
};

/* Finds the processes for `target`, a process id or a trace file, and looks at them. A command_result;
 * complaints begin with `command`. If `unrecorded` is not NULL and nothing records the process,
 * *unrecorded is the process, nothing is open, and there is no complaint; otherwise *unrecorded is 0. */
int live_open(const char *command, const char *target, struct live *live, pid_t *unrecorded);

/* Looks again: adds new processes, and removes those that have ended. */
void live_inspect(struct live *live);

void live_close(struct live *live);

/* A thread of the process, from /proc: its name, and what it does ("on CPU", "sleeping"). Both are "" if it
 * is not known. `thread_id` is a number of the process's own pid namespace. */
struct live_thread {
	char name[64];
	const char *state;
};
const char *live_state_name(char state); /* of the letter in /proc */
struct live_thread live_thread_inspect(const struct live_process *process, uint32_t thread_id);
