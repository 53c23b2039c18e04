/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type of the samples that a command shows: --type. A file may have types that this
 * build does not know; it names their units.
 */
#pragma once

#include <sqlite3.h>

#include "cmd/line/command.h"

#define SHOWN_TYPE_DEFAULT "CPU"
#define SHOWN_TYPE_OPTION(variable)                                                                          \
	COMMAND_OPTION("type", "TYPE", OPTION_TYPE, (variable),                                              \
	               "samples of this type: cpu (default), wall, offcpu, or another type in the file")

struct shown_type {
	char name[64];     /* as in trace_log.trace_type, once it was read */
	char unit[32];     /* "": no such samples were seen yet */
	char title[96];    /* for headings: "CPU time", "wall time", "Memory in bytes" */
	const char *clock; /* "CPU", "wall": what they are the time of; NULL: of something else */
	bool is_timed;     /* a timer took them: their weights are periods */
	bool is_wall;      /* given as wall time, which each file may have in its own way */
};

/* By its name in any case, or "wall": all time of both CPU and OffCPU samples (SHOWN_TYPE_WALL),
 * or samples of the type Real, whichever the file has. NULL stands for SHOWN_TYPE_DEFAULT. */
#define SHOWN_TYPE_WALL "Wall"
struct shown_type shown_type_of(const char *name);

/* Reads the unit from the file, and what wall time is there (sql/read/selected.sql comes before). False where
 * the file has no such samples and this build knows no such type. */
bool shown_type_read(struct shown_type *type, sqlite3 *db);

/* "no samples on the wall clock", as where there are none. */
#define SHOWN_TYPE_NONE 96
void shown_type_none(const struct shown_type *type, char text[SHOWN_TYPE_NONE]);

/* COMMAND_MISUSED, after a complaint. */
int shown_type_refuse(const struct shown_type *type, const char *command);
