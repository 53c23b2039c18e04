/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries that belong to the command.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Finds the library next to the command, as in the build's folder, or in its installed place. `path` has room
 * for PATH_MAX. False: it is in neither. */
bool library_find(const char *name, char *path);
