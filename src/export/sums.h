/*
 * Samples of the same stack and labels, summed up.
 */
#ifndef QUERYPROF_EXPORT_SUMS_H
#define QUERYPROF_EXPORT_SUMS_H

#include "export/export.h"
#include "base/hash_table.h"

struct sum {
	const struct report_stack *stack;
	const struct report_labels *labels;
	int64_t samples, weight, ns;
};

/* Start with a zeroed struct. */
struct sums {
	struct hash_table table;
	struct sum *list; /* in the order in which they first came */
	uint32_t count, capacity;
};

/* False: no memory. */
bool sums_add(struct sums *sums, const struct report_sample *sample);

void sums_free(struct sums *sums);

#endif
