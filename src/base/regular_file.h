/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files whose path comes from outside: a user, the environment, a file.
 */
#ifndef QUERYPROF_BASE_REGULAR_FILE_H
#define QUERYPROF_BASE_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens a regular file for reading. Anything else, a device, a pipe, a socket, is not opened at
 * all: to open one can already have effects. The descriptor and what fstat() says, or -1 with
 * errno. */
int regular_file_open(const char *path, struct stat *status);

#endif
