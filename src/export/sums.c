#include "export/sums.h"

static struct sum *find_sum(struct sums *sums, const struct export_sample *sample)
{
	uint64_t words[] = { sample->stack->number, sample->labels->number };
	struct hash key = hash_words(words, 2);
	uint32_t number = index_find(&sums->index, key);

	if (number != INDEX_NONE)
		return &sums->list.items[number];
	if (!vector_reserve(&sums->list, sums->list.count + 1) || index_add(&sums->index, key) == INDEX_NONE)
		return NULL;
	struct sum *sum = vector_add(&sums->list);
	sum->stack = sample->stack;
	sum->labels = sample->labels;
	return sum;
}

bool sums_add(struct sums *sums, const struct export_sample *sample)
{
	struct sum *sum = find_sum(sums, sample);

	if (!sum)
		return false;
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
