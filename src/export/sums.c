/*
 * A hash table of numbers over an array of sums. See the header.
 */
#include "export/sums.h"

#include <stdlib.h>

struct entry {
	struct hash key;
	uint32_t number;
};

static struct sum *find_sum(struct sums *sums, const struct report_sample *sample)
{
	uint64_t words[] = { sample->stack->number, sample->labels->number };
	struct hash key = hash_words(words, 2);

	sums->table.entry_size = sizeof(struct entry);
	sums->table.limit = SIZE_MAX;
	struct entry *entry = hash_table_find(&sums->table, key);
	if (entry)
		return &sums->list[entry->number];
	if (sums->count == sums->capacity) {
		uint32_t capacity = sums->capacity ? sums->capacity * 2 : 64;
		struct sum *grown = reallocarray(sums->list, capacity, sizeof(*grown));
		if (!grown)
			return NULL;
		sums->list = grown;
		sums->capacity = capacity;
	}
	entry = hash_table_add(&sums->table, key);
	if (!entry)
		return NULL;
	entry->number = sums->count;
	struct sum *sum = &sums->list[sums->count++];
	*sum = (struct sum){ .stack = sample->stack, .labels = sample->labels };
	return sum;
}

bool sums_add(struct sums *sums, const struct report_sample *sample)
{
	struct sum *sum = find_sum(sums, sample);

	if (!sum)
		return false;
	sum->samples++;
	sum->weight += sample->weight;
	sum->ns += sample->ns;
	return true;
}

void sums_free(struct sums *sums)
{
	free(sums->list);
	hash_table_free(&sums->table);
	*sums = (struct sums){ 0 };
}
