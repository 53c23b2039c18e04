/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sums.h"

bool sums_add(struct sums *sums, const struct export_sample *sample)
{
	const int64_t key = (int64_t)sample->labels->number << 32 | sample->stack->number;

	sums->rows.keys = sums->rows.width = 1;
	const size_t row = tally_row(&sums->rows, &key);
	struct sum *sum = row == TALLY_NONE ? NULL : vector_at(&sums->list, row);
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
	tally_free(&sums->rows);
}
