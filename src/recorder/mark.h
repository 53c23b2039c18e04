/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of recorded processes that `queryprof record` prints at the end. QUERYPROF_RECORD names a
 * pipe, to which they write a line each time: one of these characters, the number of the process, a
 * blank, the text.
 *
 * It is a pipe because RLIMIT_FSIZE does not apply to it: writing to a file beyond that limit would
 * kill the host with SIGXFSZ. A process never waits for the command, so a line for which the pipe has no
 * space is dropped.
 */
#pragma once

#include <stdbool.h>

enum mark {
	MARK_SQLITE = '+', /* the path of a SQLite library that is recorded */
	MARK_STARTED =
		'*', /* a process's first query, or its first database if SQLite is inside the program */
	MARK_REFUSED = '-',  /* why a library is not recorded */
	MARK_LOST = '!',     /* why a process without a shared ring cannot store samples */
	MARK_PROGRAM = '>',  /* a program without SQLite, after the name of its process */
	MARK_OBJECT = '.',   /* a file that such a process had mapped */
	MARK_CONFINED = '~', /* what a seccomp filter of the process disables */
};
#define MARKS_MAX (64 << 10) /* bytes that the pipe keeps */

/* Keeps errno. `text` is one line; what does not fit into PIPE_BUF is cut off. Never blocks, and
 * raises no signal. False: the pipe is unavailable. */
bool mark_write(enum mark mark, const char *text);

/* From now on by the fewest system calls, in a process that a filter may kill: without a guard against the
 * signal that a write raises if the command ends in that moment. */
void mark_plainly(void);
