/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the command that cleans up after it, even if SIGKILL ends the command.
 *
 * The child has a session of its own, which a terminal's signals do not reach. Of the command's descriptors,
 * it has only standard error, if it may print.
 */
#pragma once

#include <stdbool.h>

struct keeper {
	int pid;
	int alive; /* the end of a pipe that the command and its children hold; -1: there is no child */
};

/* The child calls `clean_up` when the last process that holds the pipe has ended, or at keeper_clean_up().
 * False: there is no child, and errno has the reason. */
bool keeper_start(struct keeper *keeper, bool may_say, void (*clean_up)(const void *context),
                  const void *context);

/* Closes the command's own end of the pipe, and waits for the child's end. */
void keeper_clean_up(struct keeper *keeper);

/* Ends the child without cleaning up. */
void keeper_dismiss(struct keeper *keeper);
