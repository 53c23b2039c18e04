/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collapsed stacks: a line a stack, its functions from the root to the leaf with
 * semicolons between them, a blank and a number. flamegraph.pl, inferno, speedscope and
 * others take it. The number is the sum of weights, sampling periods, for samples that a
 * timer took, and the sum of values for others.
 */

#include "export/export.h"
#include "export/sums.h"
#include "trace/collapse.h"

struct writer {
	EXPORT_WRITER;
	struct sums sums;
	struct export_labels none; /* labels do not matter here */
};

static bool add_collapsed(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	struct export_sample bare = *sample;

	bare.labels = &writer->none;
	return sums_add(&writer->sums, &bare);
}

/* Stacks that differ only in the places within their functions are one line. */
static bool collapse_sum(struct collapse *collapse, const struct sum *sum, bool is_timed)
{
	for (size_t i = sum->stack->count; i-- > 0;) {
		const struct export_frame *frame = sum->stack->frames[i];
		for (size_t j = frame->line_count; j-- > 0;)
			if (!collapse_frame(collapse, frame->lines[j].function))
				return false;
	}
	return collapse_stack(collapse, is_timed ? sum->weight : sum->value);
}

static bool end_collapsed(void *ended, bool complete)
{
	struct writer *writer = ended;
	struct collapse collapse = { 0 };
	bool fine = true;

	for (size_t i = 0; complete && fine && i < writer->sums.list.count; i++)
		fine = collapse_sum(&collapse, &writer->sums.list.items[i], writer->info->is_timed);
	if (complete && fine)
		fine = collapse_write(&collapse, writer->out);
	collapse_free(&collapse);
	sums_free(&writer->sums);
	return fine;
}

const struct export_format export_collapsed = {
	.name = "collapsed",
	.summary = "a line a stack, root first, for flame graph tools; periods",
	.writer_size = sizeof(struct writer),
	.add = add_collapsed,
	.end = end_collapsed,
};
