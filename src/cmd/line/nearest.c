/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/line/nearest.h"

#include <stdio.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many errors turn one into the other. Both are shorter than NEAREST_SIZE. */
static size_t count_errors(const char *a, const char *b)
{
	size_t rows[3][NEAREST_SIZE], *before = rows[0], *above = rows[1], *row = rows[2];
	const size_t width = strlen(b);

	for (size_t j = 0; j <= width; j++)
		above[j] = j;
	for (size_t i = 1; i <= strlen(a); i++) {
		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			row[j] =
				least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		size_t *free = before;
		before = above;
		above = row;
		row = free;
	}
	return above[width];
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
	size_t size = strlen(nearest->word);

	if (!size || size >= NEAREST_SIZE || strlen(candidate) >= NEAREST_SIZE)
		return;
	size_t errors = count_errors(nearest->word, candidate);
	if (errors > (size + 2) / 3 || errors >= least(size, strlen(candidate)) ||
	    (nearest->best[0] && errors >= nearest->errors))
		return;
	snprintf(nearest->best, sizeof(nearest->best), "%s", candidate);
	nearest->errors = errors;
}
