/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of 64-bit words, found by their first words: what GROUP BY makes, for millions of groups.
 *
 *	struct tally sums = { .keys = 2, .width = 3 };
 *	size_t row = tally_row(&sums, (int64_t[]){ thread, stack });
 *	if (row != TALLY_NONE)
 *		tally_at(&sums, row)[2] += value;   // 0 at first
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/vector.h"

#define TALLY_NONE SIZE_MAX

struct tally {
	size_t keys, width;    /* words of the key, of a row */
	VECTOR(int64_t) words; /* the rows, in the order in which they came */
	struct tally_slot *slots;
	size_t capacity, count;
};

/* row: counted from 1; 0: empty. hash: of its key, so that few rows of other keys are looked at. */
struct tally_slot {
	uint32_t row, hash;
};

/* The number of the row with that key, added if there is none: all words after its key are 0.
 * TALLY_NONE: out of memory. */
size_t tally_row(struct tally *tally, const int64_t *key);

/* The rows of `count` keys, which lie behind each other, at most TALLY_ROWS_MAX: the waits for memory, which
 * are most of the time where there are many rows, overlap. False: no memory. */
#define TALLY_ROWS_MAX 128
bool tally_rows(struct tally *tally, const int64_t *keys, size_t count, uint32_t *rows);

/* Its words, until the next row is made. */
static inline int64_t *tally_at(const struct tally *tally, size_t row)
{
	return &tally->words.items[row * tally->width];
}

/* A word as a number with a fraction. */
static inline double tally_number(int64_t word)
{
	double number;

	memcpy(&number, &word, sizeof(number));
	return number;
}

static inline void tally_add(int64_t *word, double number)
{
	number += tally_number(*word);
	memcpy(word, &number, sizeof(number));
}

/* Forgets the rows, numbered from 0, whose item is false. The others move up. */
void tally_keep(struct tally *tally, const bool *is_kept);

void tally_free(struct tally *tally);
