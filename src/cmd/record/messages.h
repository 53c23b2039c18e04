/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of recorded processes (recorder/mark.h), which the command takes while they run.
 */
#pragma once

/* Makes the pipe, and names it in the environment. A command_result. */
int messages_begin(void);
/* Removes it, if there is one. */
void messages_end(void);

/* Its descriptor, -1: there is none; and takes the messages from it, so that it does not become full. One
 * thread at a time. */
int messages_pipe(void);
void messages_take(void);
const char *messages_path(void);

/* All lines so far. Valid until the next call. */
const char *messages_all(void);

/* The next line of one of these kinds (enum mark), malloc'ed and safe for a terminal, and the process that
 * wrote it; NULL: there is none. */
char *messages_next(const char **lines, const char *kinds, long *process);
