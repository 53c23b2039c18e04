/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of `record` and `attach`: their options, the settings for processes, and the trace file.
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
	int64_t before; /* the newest process in the file */
	int64_t runs_before;     /* that were counted */
	int64_t removals_before; /* of rows, to keep the file's limit */
	struct collection *collection;
};

/* The name of the command in complaints, and its options. */
extern const char *recording_command;
extern const char *recording_quiet, *recording_no_symbols;
extern const char *recording_path; /* the path of the trace file, as given */
extern const struct command_option recording_options[];

/* Takes an option with a value. The second one then sets the remaining settings. Both return a
 * command_result. */
int recording_take(const struct command_option *option, const char *value);
int recording_prepare(void);

/* Finds the recorder's file of this build; `library` has room for PATH_MAX. Puts what processes need from
 * this command into the environment. A command_result. */
int recording_find_library(char *library);

/* Makes the trace file before hours of work, so that an error is known early; records refusals, and begins
 * to push. A command_result; recording_undo() in both cases. */
int recording_begin(struct recording *recording);

/* Begins to store (see rings_watch()). */
void recording_watch(const struct recording *recording);

/* With --push: continues in the process that continues to store, until that ends. */
void recording_push_on(const char *path);

/* With --live: waits until the user has seen enough; not if a signal other than Ctrl-C has ended the
 * recording. */
void recording_show(bool is_dismissed);

/* Removes the trace file, if it was made for this recording. */
void recording_remove(const struct recording *recording);

/* Nothing was recorded. Returns the result. */
int recording_undo(const struct recording *recording, int result);
