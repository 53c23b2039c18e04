/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in memory, to be looked through.
 */
#pragma once

#include <sys/stat.h>

/* To be unmapped with its size. NULL: it cannot be read, is empty, or no regular file. */
void *file_map(const char *path, struct stat *status);
