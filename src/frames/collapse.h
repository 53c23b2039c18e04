/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collapsed stacks, the lines that flame graph programs read: functions from the
 * root to the leaf with semicolons between them, a space, a number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text_sums.h"
#include "base/vector.h"

/* Start with a zeroed struct. */
struct collapse {
	struct text_sums lines;
	VECTOR(char) line; /* of the stack that is being put together */
};

/* A stack is its functions, root first, then its weight. The weights of equal stacks are
 * added up. Semicolons and control characters in a name are replaced, since they have a
 * meaning in the lines. False: no memory. */
bool collapse_frame(struct collapse *collapse, const char *name);
bool collapse_stack(struct collapse *collapse, int64_t weight);

/* Writes all lines, in the order of their bytes; no stack may follow. False: not written. */
bool collapse_write(struct collapse *collapse, FILE *out);

void collapse_free(struct collapse *collapse);
