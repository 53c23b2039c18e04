/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders whose trace files and databases the server may read. It follows no symbolic link, accepts no
 * "..", and refuses files of other users.
 */
#pragma once

#include <stdio.h>

/* A command_result, after a complaint. */
int folders_open(int count, char **paths);

/* The path of the trace file that a client names: below a folder, or absolute; NULL: the newest one.
 * malloc'ed; NULL: `to` has the reason. */
char *folders_find(const char *name, FILE *to);

/* The same for a database, and for its -wal and -journal files, which are copied with it. */
char *folders_find_database(const char *name, FILE *to);

/* Writes a line for each trace file in the folders, newest first. */
void folders_list(FILE *to);
