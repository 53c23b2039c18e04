/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type of the samples that a command shows: --type. A file may have types that this build does not know,
 * with their units.
 */
#pragma once

#include <sqlite3.h>

#include "cmd/line/command.h"

#define SHOWN_TYPE_DEFAULT "CPU"
#define SHOWN_TYPE_OPTION(variable)                                                                          \
	COMMAND_OPTION("type", "TYPE", OPTION_TYPE, (variable),                                              \
	               "samples of this type: cpu (default), wall, offcpu, memory, live, or another type "   \
	               "in the file")

struct shown_type {
	char name[64];     /* as in trace_log.trace_type, after it was read */
	char unit[32];     /* "": no such samples yet */
	char title[96];    /* for headings: "CPU time", "wall time", "allocated memory", "Quux in furlongs" */
	const char *clock; /* "CPU", "wall": the clock that they measure; NULL: not a time */
	bool is_timed;     /* from a timer: weights are periods */
	bool is_wall;      /* wall time, whose samples differ from file to file */
	bool is_memory;    /* allocated, or live */
};

/* Finds the type by its name in any case. "wall": all time of both CPU and OffCPU samples (SHOWN_TYPE_WALL),
 * or samples of the type Real, whichever the file has. NULL: SHOWN_TYPE_DEFAULT. */
#define SHOWN_TYPE_WALL "Wall"
struct shown_type shown_type_of(const char *name);

/* Reads the unit from the file, and the kind of its wall time (after sql/read/selected.sql). False if the
 * file has no such samples and this build knows no such type. */
bool shown_type_read(struct shown_type *type, sqlite3 *db);

/* "no samples on the wall clock", for files that have none. */
#define SHOWN_TYPE_NONE 96
void shown_type_none(const struct shown_type *type, char text[SHOWN_TYPE_NONE]);

/* COMMAND_MISUSED, after a complaint. */
int shown_type_refuse(const struct shown_type *type, const char *command);
