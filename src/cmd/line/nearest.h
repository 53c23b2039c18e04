/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a word that is not known may have been meant to be: "did you mean".
 */
#pragma once

#include <stddef.h>

#define NEAREST_SIZE 64 /* longer words get no suggestion */

/* Begins as { .word = … }; "" in `best`: nothing is near. */
struct nearest {
	const char *word;
	char best[NEAREST_SIZE];
	size_t errors; /* of `best` */
};

/* Keeps the candidate if it is nearer than those before, and no farther than one letter in three. A letter
 * that is wrong, missing, or too many counts one, and so do two that changed places. */
void nearest_try(struct nearest *nearest, const char *candidate);
