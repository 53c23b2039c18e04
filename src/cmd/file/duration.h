/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times in words, for SQL: duration(NS) is "1.5 s", "20 ms"; NULL of NULL.
 */
#ifndef QUERYPROF_CMD_FILE_DURATION_H
#define QUERYPROF_CMD_FILE_DURATION_H

#include <sqlite3.h>
#include <stddef.h>

/* The same, cut to `room` bytes with the zero. */
void duration_text(double ns, char *text, size_t room);

/* Gives `db` the function. An SQLite result. */
int duration_add(sqlite3 *db);

#endif
