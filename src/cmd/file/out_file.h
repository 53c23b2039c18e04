/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file to write that is there whole or not at all: it has another name until it is
 * complete, and what was there before stays until then. "-" is stdout; devices and
 * pipes are written as they are. One at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct out_file {
	FILE *stream;
	const char *path;       /* as given */
	char *target, *partial; /* NULL where it is written in place */
};

/* `sources`: the trace files that are read, none of which is written over, by whatever name; NULL ends them.
 * COMMAND_FAILED after a complaint. */
int out_file_open(struct out_file *out, const char *path, const char *const *sources);

/* Gives it its name if `is_whole` and all could be written, else takes it away.
 * COMMAND_FAILED after a complaint about the writing. */
int out_file_close(struct out_file *out, bool is_whole);

/* The path for messages. */
const char *out_file_name(const char *path);
