/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known word that an unknown word may mean: "did you mean".
 */
#pragma once

#include <stddef.h>

#define NEAREST_SIZE 64 /* longer words get no suggestion */

/* Initialize as { .word = … }; `best` stays "" if no word is near. */
struct nearest {
	const char *word;
	char best[NEAREST_SIZE];
	size_t errors; /* of `best` */
};

/* Keeps the candidate if it is nearer than those before, with at most one error in three letters. A wrong,
 * missing or superfluous letter is one error, and so are two swapped letters. */
void nearest_try(struct nearest *nearest, const char *candidate);
