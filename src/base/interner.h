/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts, each kept once and numbered from 0 in the order in which they come.
 */
#pragma once

#include "base/index.h"
#include "base/vector.h"

#define INTERNER_NO_MEMORY INDEX_NONE

/* Start with a zeroed struct. A text does not move when others come. */
struct interner {
	struct index index;
	VECTOR(char *) texts; /* by number */
};

/* The number of the text, which is copied when it is new; INTERNER_NO_MEMORY. */
uint32_t interner_number(struct interner *interner, const char *text);

/* The kept copy of these bytes, followed by a zero; NULL: out of memory. */
const char *interner_keep(struct interner *interner, const char *bytes, size_t size);

void interner_free(struct interner *interner);
