/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foldStack(functions, modules), a report's SQL function: the frames of a stack that say
 * it from the stacks shown before it, a line each.
 */
#pragma once

#include <sqlite3.h>

/* Adds the function, which has shown no stack yet. An SQLite result. */
int fold_stack_add(sqlite3 *db);
