/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in memory, to be looked through.
 */
#ifndef QUERYPROF_CMD_FILE_FILE_MAP_H
#define QUERYPROF_CMD_FILE_FILE_MAP_H

#include <sys/stat.h>

/* To be unmapped with its size. NULL: it cannot be read, is empty, or no regular file. */
void *file_map(const char *path, struct stat *status);

#endif
