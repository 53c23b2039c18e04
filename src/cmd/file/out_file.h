/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that appears completely or not at all: it has a temporary name until it is complete, and an
 * existing file stays until then. "-" is stdout; devices and pipes are written directly. One at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct out_file {
	FILE *stream;
	const char *path;       /* as given */
	char *target, *partial; /* NULL: written in place */
};

/* sources: the trace files that are read, none of which is overwritten under any name; NULL ends them.
 * COMMAND_FAILED after a complaint. */
int out_file_open(struct out_file *out, const char *path, const char *const *sources);

/* Gives the file its name if `is_whole` and all writes succeeded, else removes it. COMMAND_FAILED after a
 * complaint about the writing. */
int out_file_close(struct out_file *out, bool is_whole);

/* The path for messages. */
const char *out_file_name(const char *path);
