/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `record` and `attach` have in common: their options, the settings that processes get, and the trace
 * file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/line/command.h"

struct collection;

struct recording {
	const char *path;
	bool is_new;
	bool is_open;   /* it could be opened: one that is new and could not is perhaps another process's */
	int64_t before; /* the newest process that it knows */
	int64_t runs_before; /* that were counted */
	struct collection *collection;
};

/* The name of the command that complains, and the options that were given. */
extern const char *recording_command;
extern const char *recording_quiet, *recording_no_symbols;
extern const char *recording_path; /* of the trace file, as given */
extern const struct command_option recording_options[];

/* Takes one of those with a value. Then sets the settings that have none. A command_result, both. */
int recording_take(const struct command_option *option, const char *value);
int recording_prepare(void);

/* The recorder's file, which is this build's; `library` has room for PATH_MAX. What processes must know of
 * this one is in the environment then. A command_result. */
int recording_find_library(char *library);

/* Makes the trace file, because a file that cannot be written is to be known before hours of work, not after;
 * takes note of what is refused, and begins to push. A command_result; recording_undo() in both cases. */
int recording_begin(struct recording *recording);

/* Begins to store: see rings_watch(). */
void recording_watch(const struct recording *recording);

/* Removes the trace file, if it was made for this recording. */
void recording_remove(const struct recording *recording);

/* Nothing was recorded. Returns the result. */
int recording_undo(const struct recording *recording, int result);
