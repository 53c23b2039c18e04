/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type of the samples that a command shows: --type. A file may have types that this
 * build does not know; it tells their units.
 */
#ifndef QUERYPROF_COMMAND_SHOWN_TYPE_H
#define QUERYPROF_COMMAND_SHOWN_TYPE_H

#include <sqlite3.h>

#include "command.h"

#define SHOWN_TYPE_DEFAULT "CPU"
#define SHOWN_TYPE_OPTION(variable)                                                                          \
	{                                                                                                    \
		.name = "type", .value = "TYPE",                                                             \
		.help = "samples of this type: cpu (default), wall, or another of the file",                 \
		.to = (variable), .kind = OPTION_TYPE                                                        \
	}

struct shown_type {
	char name[64];     /* as in trace_log.trace_type, once it was read */
	char unit[32];     /* "": no such samples were seen yet */
	char title[96];    /* for headings: "CPU time", "wall time", "Memory in bytes" */
	const char *clock; /* of the timer that took them: "CPU", "wall"; NULL: no timer did */
};

/* By its name in any case, or "wall", as people call Real. NULL stands for
 * SHOWN_TYPE_DEFAULT. */
struct shown_type shown_type_of(const char *name);

/* Reads the unit from the file. False where the file has no such samples and this build
 * knows no such type. */
bool shown_type_read(struct shown_type *type, sqlite3 *db);

/* COMMAND_MISUSED, after a complaint. */
int shown_type_refuse(const struct shown_type *type, const char *command);

#endif
