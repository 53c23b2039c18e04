/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function of the archive is which one of the object?
 */
#pragma once

#include "symbol/archive/side.h"

/* For each function of the archive the object's function that is proven to be the
 * same one, else ARCHIVE_NONE. malloc'ed; NULL: the two do not belong together, or
 * no memory. Decodes the sides once they seem to. */
uint32_t *archive_match(struct code_side *object, struct code_side *archive);
