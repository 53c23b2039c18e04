/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries that belong to the command.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* The library of that file name beside the command, as in the build's folder, or where it
 * is installed with it; `path` has room for PATH_MAX. False: in neither place. */
bool library_find(const char *name, char *path);
