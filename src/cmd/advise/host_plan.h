/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program's own SQLite would plan a statement as queryprof's does.
 */
#pragma once

#include "cmd/advise/way.h"

#define HOST_PLAN_LIBRARY "libsqlite3.so.0"

/* Prints a sentence, and both plans if they differ. host: a shared library of SQLite, or a recording of the
 * program; NULL: the system's library. A process of this command loads the library and asks it on the copy,
 * without running the statement. */
void host_plan_print(const struct way *way, struct connection *connection, const char *copy,
                     const char *host);

/* Prints the lines of a plan, indented, without the control characters of a stranger's names. */
void host_plan_print_lines(const char *text);

/* The work of that process: `queryprof --explain-statement LIBRARY COPY SQL PRAGMA` prints the version and
 * the file of the library, then the plan. Returns its exit status. */
int host_plan_run(int argc, char **argv);
