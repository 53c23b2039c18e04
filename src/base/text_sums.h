/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum for each of many texts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/interner.h"
#include "base/vector.h"

struct text_sum {
	const char *text;
	int64_t sum;
};

/* Start with a zeroed struct. */
struct text_sums {
	struct interner texts;
	VECTOR(struct text_sum) list; /* in the order in which the texts first came */
};

/* Adds to the text's sum, which stays within the range of its type. False: no memory. */
bool text_sums_add(struct text_sums *sums, const char *text, int64_t amount);

/* Sorts the list by the bytes of the texts. Nothing may be added after that. */
void text_sums_sort(struct text_sums *sums);

void text_sums_free(struct text_sums *sums);
