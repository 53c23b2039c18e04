/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of another source.
 */
#pragma once

#include "symbol/archive/side.h"

/* Marks the members that have a string which the object does not have. False: no
 * memory. */
bool archive_find_foreign(const struct code_side *object, const struct code_side *archive, bool *is_foreign);
