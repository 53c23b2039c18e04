/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the same stack and labels, summed up.
 */
#ifndef QUERYPROF_EXPORT_SUMS_H
#define QUERYPROF_EXPORT_SUMS_H

#include "base/tally.h"
#include "base/vector.h"
#include "export/export.h"

struct sum {
	const struct export_stack *stack;
	const struct export_labels *labels;
	int64_t samples, weight, value;
};

/* Start with a zeroed struct. There may be nearly as many sums as samples, so these are small. */
struct sums {
	struct tally rows;                          /* in the order in which they first came */
	VECTOR(const struct export_stack *) stacks; /* by number */
	VECTOR(const struct export_labels *) labels;
};

/* False: no memory. */
bool sums_add(struct sums *sums, const struct export_sample *sample);

static inline size_t sums_count(const struct sums *sums)
{
	return sums->rows.count;
}

struct sum sums_at(const struct sums *sums, size_t index);

void sums_free(struct sums *sums);

#endif
