/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collapsed stacks: a line for each stack, its functions from the root to the leaf with semicolons between
 * them, a blank and a number. flamegraph.pl, inferno, speedscope and others read it. The number is the sum of
 * values in the type's unit. For samples of a timer, it is the number of sampling periods, which those
 * programs call samples. If periods differ, it counts their greatest common divisor, so a stack's width is
 * always its time.
 */

#include "export/export.h"
#include "export/sums.h"
#include "frames/collapse.h"

struct writer {
	EXPORT_WRITER;
	struct sums sums;
	int64_t unit;              /* of the numbers, in the values' unit; 0: no sample has a value */
	struct export_labels none; /* the format ignores labels */
};

/* The greatest common divisor; every number divides 0. */
static int64_t common_divisor(int64_t one, int64_t other)
{
	while (other) {
		int64_t rest = one % other;

		one = other;
		other = rest;
	}
	return one;
}

static bool add_collapsed(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	struct export_sample bare = *sample;

	bare.labels = &writer->none;
	/* A value is a multiple of its period, except in a damaged file, so divisions leave no remainder. */
	writer->unit =
		writer->info->is_timed
			? common_divisor(writer->unit, common_divisor(sample->period_ns, sample->value))
			: 1;
	return sums_add(&writer->sums, &bare);
}

/* Stacks that differ only in the places within their functions become one line. */
static bool collapse_sum(struct collapse *collapse, const struct export_stack *stack, int64_t value)
{
	for (size_t i = stack->count; i-- > 0;) {
		const struct export_frame *frame = export_stack_frame(stack, i);
		for (size_t j = frame->line_count; j-- > 0;)
			if (!collapse_frame(collapse, frame->lines[j].function))
				return false;
	}
	return collapse_stack(collapse, value);
}

static bool end_collapsed(void *ended, bool complete)
{
	struct writer *writer = ended;
	struct collapse collapse = { 0 };
	bool fine = true;

	for (size_t i = 0; complete && fine && i < sums_count(&writer->sums); i++) {
		const struct sum sum = sums_at(&writer->sums, i);

		fine = collapse_sum(&collapse, sums_stack(&writer->sums, sum),
		                    sum.value / (writer->unit ? writer->unit : 1));
	}
	if (complete && fine)
		fine = collapse_write(&collapse, writer->out);
	collapse_free(&collapse);
	sums_free(&writer->sums);
	return fine;
}

const struct export_format export_collapsed = {
	.name = "collapsed",
	.summary = "one line per stack, root first: flame graph tools; periods",
	.has_root = true,
	.labels_read = EXPORT_LABELS_NONE,
	.writer_size = sizeof(struct writer),
	.add = add_collapsed,
	.end = end_collapsed,
};
