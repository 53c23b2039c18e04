/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of another source.
 */
#ifndef QUERYPROF_SYMBOL_ARCHIVE_FOREIGN_H
#define QUERYPROF_SYMBOL_ARCHIVE_FOREIGN_H

#include "symbol/archive/side.h"

/* Marks the members that have a string which the object does not have. False: no
 * memory. */
bool archive_find_foreign(const struct code_side *object, const struct code_side *archive, bool *is_foreign);

#endif
