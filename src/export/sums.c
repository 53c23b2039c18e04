/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sums.h"

#include <stdlib.h>

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
	if (words[SAMPLES]++)
		return true;
	int64_t *last_ns = vector_at(&sums->last_ns, sample->labels->number);
	if (!last_ns || !EXPORT_KEEP(&sums->stacks, sample->stack) ||
	    !EXPORT_KEEP(&sums->labels, sample->labels))
		return false;
	*last_ns = sample->labels->last_ns;
	return true;
}

static uint32_t stack_of(const struct sums *sums, size_t row)
{
	return (uint32_t)tally_at(&sums->rows, row)[KEY];
}

static uint32_t labels_of(const struct sums *sums, size_t row)
{
	return (uint32_t)((uint64_t)tally_at(&sums->rows, row)[KEY] >> 32);
}

struct sum sums_at(const struct sums *sums, size_t index)
{
	const int64_t *words = tally_at(&sums->rows, index);

	return (struct sum){
		.stack = stack_of(sums, index),
		.labels = labels_of(sums, index),
		.samples = words[SAMPLES],
		.weight = words[WEIGHT],
		.value = words[VALUE],
	};
}

/* Orders the rows' numbers by stack. False: no memory. */
static bool order_rows(const struct sums *sums, uint32_t *rows, size_t count)
{
	uint32_t *ends = calloc(sums->stacks.count + 1, sizeof(*ends)),
		 *ordered = malloc((count + 1) * sizeof(*ordered)), end = 0;

	for (size_t i = 0; ends && ordered && i < count; i++)
		ends[stack_of(sums, rows[i])]++;
	for (size_t i = 0; ends && ordered && i < sums->stacks.count; i++) {
		const uint32_t own = ends[i];

		ends[i] = end;
		end += own;
	}
	for (size_t i = 0; ends && ordered && i < count; i++)
		ordered[ends[stack_of(sums, rows[i])]++] = rows[i];
	const bool fine = ends && ordered;
	if (fine)
		memcpy(rows, ordered, count * sizeof(*rows));
	free(ends);
	free(ordered);
	return fine;
}

#define TAKEN 64 /* sums at once */

bool sums_flush(struct sums *sums, int64_t now_ns, bool by_stack,
                bool (*take)(void *context, const struct sums *sums, const struct sum *first, size_t count),
                void *context)
{
	uint32_t *ended = malloc((sums->rows.count + 1) * sizeof(*ended)), count = 0;
	bool *is_kept = calloc(sums->rows.count + 1, sizeof(*is_kept)), fine = ended && is_kept;
	struct sum taken[TAKEN];

	for (uint32_t i = 0; fine && i < sums->rows.count; i++) {
		is_kept[i] = !sums_has_ended(sums->last_ns.items[labels_of(sums, i)], now_ns);
		if (!is_kept[i])
			ended[count++] = i;
	}
	if (fine && by_stack)
		fine = order_rows(sums, ended, count);
	for (uint32_t i = 0; fine && i < count; i += TAKEN) {
		const size_t some = count - i < TAKEN ? count - i : TAKEN;

		for (size_t j = 0; j < some; j++)
			taken[j] = sums_at(sums, ended[i + j]);
		fine = take(context, sums, taken, some);
	}
	if (fine)
		tally_keep(&sums->rows, is_kept);
	free(ended);
	free(is_kept);
	return fine;
}

void sums_free(struct sums *sums)
{
	tally_free(&sums->rows);
	vector_free(&sums->stacks);
	vector_free(&sums->labels);
	vector_free(&sums->last_ns);
}
