/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files whose path comes from outside: a user, the environment, a file.
 */
#pragma once

#include <sys/stat.h>

/* Opens a regular file for reading. Anything else, a device, a pipe, a socket, is not opened at
 * all, because opening one can already have effects. Returns the descriptor and the result of
 * fstat(), or -1 with errno. */
int regular_file_open(const char *path, struct stat *status);

/* Opens a regular file to write to it, and makes it with mode 0600 if it does not exist: `flags`
 * as for open(). An existing file must belong to this user, or to root, who can read everything;
 * another owner could read the content. A symbolic link is not followed. Returns the descriptor,
 * or -1 with errno: ELOOP for a link and EPERM for a file of the wrong kind or owner. */
int regular_file_make(const char *path, int flags);
