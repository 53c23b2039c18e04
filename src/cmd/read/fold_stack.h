/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foldStack(functions, modules), a report's SQL function: the frames that distinguish a stack from those
 * shown before it, one a line.
 */
#pragma once

#include <sqlite3.h>

/* Adds the function with an empty list of shown stacks. An SQLite result. */
int fold_stack_add(sqlite3 *db);
