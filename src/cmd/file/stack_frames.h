/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions on the stacks of the open trace file.
 */
#ifndef QUERYPROF_CMD_FILE_STACK_FRAMES_H
#define QUERYPROF_CMD_FILE_STACK_FRAMES_H

#include <sqlite3.h>

/* Gives `db`, the open file, the SQL function stackFrames(). An SQLite result. */
int stack_frames_add(sqlite3 *db);

#endif
