/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sums.h"

/* The words of a row. KEY: the labels' number, then the stack's. */
enum { KEY, SAMPLES, WEIGHT, VALUE, WORDS };

bool sums_add(struct sums *sums, const struct export_sample *sample)
{
	const int64_t key = (int64_t)((uint64_t)sample->labels->number << 32 | sample->stack->number);

	sums->rows.keys = SAMPLES;
	sums->rows.width = WORDS;
	const size_t row = tally_row(&sums->rows, &key);
	if (row == TALLY_NONE)
		return false;
	int64_t *words = tally_at(&sums->rows, row);
	words[WEIGHT] += sample->weight;
	words[VALUE] += sample->value;
	return words[SAMPLES]++ ||
	       (EXPORT_KEEP(&sums->stacks, sample->stack) && EXPORT_KEEP(&sums->labels, sample->labels));
}

struct sum sums_at(const struct sums *sums, size_t index)
{
	const int64_t *words = tally_at(&sums->rows, index);

	return (struct sum){
		.stack = sums->stacks.items[words[KEY] & UINT32_MAX],
		.labels = sums->labels.items[(uint64_t)words[KEY] >> 32],
		.samples = words[SAMPLES],
		.weight = words[WEIGHT],
		.value = words[VALUE],
	};
}

void sums_free(struct sums *sums)
{
	tally_free(&sums->rows);
	vector_free(&sums->stacks);
	vector_free(&sums->labels);
}
