/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in memory, for searching.
 */
#pragma once

#include <sys/stat.h>

/* The caller unmaps it with its size. NULL: it is unreadable, empty, or not a regular file. */
void *file_map(const char *path, struct stat *status);
