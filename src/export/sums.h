/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of samples with the same stack and labels. There may be nearly as many sums as samples, so a sum is
 * small, and sums are flushed when their labels have ended.
 */
#pragma once

#include "base/tally.h"
#include "base/vector.h"
#include "export/export.h"

struct sum {
	uint32_t stack, labels; /* numbers */
	int64_t samples, weight, value;
};

/* Start with a zeroed struct. */
struct sums {
	struct tally rows;                          /* in the order of arrival */
	VECTOR(const struct export_stack *) stacks; /* by number */
	VECTOR(const struct export_labels *) labels;
	VECTOR(int64_t) last_ns; /* of the labels */
};

/* False: no memory. */
bool sums_add(struct sums *sums, const struct export_sample *sample);

static inline size_t sums_count(const struct sums *sums)
{
	return sums->rows.count;
}

struct sum sums_at(const struct sums *sums, size_t index);

/* For a sum that was not flushed. */
static inline const struct export_stack *sums_stack(const struct sums *sums, struct sum sum)
{
	return sums->stacks.items[sum.stack];
}

static inline const struct export_labels *sums_labels(const struct sums *sums, struct sum sum)
{
	return sums->labels.items[sum.labels];
}

/* Passes on the sums whose labels have no samples from that time on (INT64_MAX: all), and forgets them.
 * `take` gets several sums, so that it can prefetch the labels of the next ones, which are scattered in
 * memory, while it writes one. by_stack: sums of one stack are adjacent, so common data is at hand and
 * compresses well; otherwise in the order of arrival. False: no memory, or `take` returned false. */
bool sums_flush(struct sums *sums, int64_t now_ns, bool by_stack,
                bool (*take)(void *context, const struct sums *sums, const struct sum *first, size_t count),
                void *context);

/* Fetches the item that belongs to a later one of the taken sums. */
#define SUMS_FETCH(vector, number)                                                                           \
	do {                                                                                                 \
		if ((number) < (vector)->count)                                                              \
			__builtin_prefetch(&(vector)->items[number]);                                        \
	} while (0)
#define SUMS_AHEAD 8 /* how much later */

/* Whether labels with this last_ns have no samples from that time on. */
static inline bool sums_has_ended(int64_t last_ns, int64_t now_ns)
{
	return last_ns < now_ns || now_ns == INT64_MAX;
}

void sums_free(struct sums *sums);
