/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the command that cleans up after it, whatever ends the command: SIGKILL, too.
 *
 * The child is in a session of its own, where a terminal's signals do not reach it. It has none of the
 * command's descriptors but standard error, if it may say something.
 */
#pragma once

#include <stdbool.h>

struct keeper {
	int pid;
	int alive; /* the end of a pipe that the command holds, and what it forks; -1: there is no child */
};

/* The child calls `clean_up` when the last one that holds the pipe has ended, or at keeper_clean_up(). False:
 * there is no child, and errno says why. */
bool keeper_start(struct keeper *keeper, bool may_say, void (*clean_up)(const void *context),
                  const void *context);

/* The command itself holds the pipe no longer; waits for the child's end. */
void keeper_clean_up(struct keeper *keeper);

/* Nothing is left to clean up: the child ends without. */
void keeper_dismiss(struct keeper *keeper);
