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

/* Opens a regular file to write to it, and makes it with mode 0600 where there is none: `flags` as for
 * open(). What lies there must be this user's, or root's, who reads everything: another could read what is
 * written. A symbolic link is not followed. The descriptor, or -1 with errno; it is ELOOP for a link and
 * EPERM for what is not as it must be. */
int regular_file_make(const char *path, int flags);

#endif
