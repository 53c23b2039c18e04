/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error messages of the command, and how a command ends.
 */
#pragma once

enum command_result {
	COMMAND_FINE = 0,
	COMMAND_FAILED = 1,  /* the file cannot be read, the SQL is wrong, no such query */
	COMMAND_MISUSED = 2, /* usage error */
};

/* Prints "queryprof: …" to stderr; returns COMMAND_FAILED. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* After the first, complaints are kept, not printed. The second ends that: all of them in one line
 * (malloc'ed); NULL: none, or no memory. */
void complain_hold(void);
char *complain_detach(void);
