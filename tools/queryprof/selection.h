/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs a command is about: the options that several commands share.
 */
#ifndef QUERYPROF_COMMAND_SELECTION_H
#define QUERYPROF_COMMAND_SELECTION_H

#include <sqlite3.h>

#include "command.h"

/* The shared options; NULL: not given. */
struct selection {
	const char *query, *like, *since, *until, *last;
};
extern struct selection selection;
extern const struct command_option selection_options[];

bool selection_is_all(const struct selection *one); /* no option was given */

/* COMMAND_MISUSED after a complaint about a time. */
int selection_check(const char *command, const struct selection *one);

/* Opens the file and gives it temp.selected and its views (sql/selected.sql); NULL after
 * a complaint. */
sqlite3 *selection_open(const char *path, const struct selection *one);

#endif
