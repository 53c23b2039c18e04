/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sums.h"

bool sums_add(struct sums *sums, const struct export_sample *sample)
{
	const uint64_t words[] = { sample->stack->number, sample->labels->number };
	struct sum *sum = index_item(&sums->index, hash_words(words, 2), &sums->list);

	if (!sum)
		return false;
	sum->stack = sample->stack;
	sum->labels = sample->labels;
	sum->samples++;
	sum->weight += sample->weight;
	sum->value += sample->value;
	return true;
}

void sums_free(struct sums *sums)
{
	vector_free(&sums->list);
	index_free(&sums->index);
}
