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

/* Start with a zeroed struct. */
struct sums {
	struct tally rows;       /* by the numbers of stack and labels; as `list` */
	VECTOR(struct sum) list; /* in the order in which they first came */
};

/* False: no memory. */
bool sums_add(struct sums *sums, const struct export_sample *sample);

void sums_free(struct sums *sums);

#endif
