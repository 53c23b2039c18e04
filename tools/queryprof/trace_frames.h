/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions on the stacks of the open trace file.
 */
#ifndef QUERYPROF_COMMAND_TRACE_FRAMES_H
#define QUERYPROF_COMMAND_TRACE_FRAMES_H

#include <sqlite3.h>
#include <stdbool.h>

struct names;

/* The names in the open file, for exports; `inlines`: an inlined function is a frame of its
 * own. names_free() it before the file is closed. NULL: no memory. */
struct names *trace_frames_names(bool inlines);

/* Gives `db`, the open file, the SQL function traceFrames(). An SQLite result. */
int trace_frames_add(sqlite3 *db);

#endif
