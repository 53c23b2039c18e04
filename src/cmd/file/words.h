/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shorter names of files. fileName(PATH) in SQL: what follows the last slash of a path.
 */
#ifndef QUERYPROF_CMD_FILE_FILE_NAME_H
#define QUERYPROF_CMD_FILE_FILE_NAME_H

#include <sqlite3.h>

/* Gives a connection the function. An SQLite result. */
int file_name_add(sqlite3 *db);

/* The path as from the present folder, if it is below that. */
const char *file_name_here(const char *path);

#endif
