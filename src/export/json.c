/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for programs of one's own: an array with one object for each stack of each
 * query and thread, with all that is known of it. Frames are leaf first, as in
 * trace_log. Times are in "ns"; what samples of other types count, in "value" and "unit".
 *
 *   jq -r '.[] | select(.query_id == "big sort") | [.ns, .frames[0].function] | @tsv'
 */
#include <inttypes.h>
#include <string.h>

#include "base/sample_type.h"
#include "export/export.h"
#include "export/sums.h"
#include "export/text.h"

struct writer {
	EXPORT_WRITER;
	struct sums sums;
};

static bool add_json(void *writer, const struct export_sample *sample)
{
	return sums_add(&((struct writer *)writer)->sums, sample);
}

static void write_member(FILE *out, const char *before, const char *name, const char *value)
{
	fprintf(out, "%s\"%s\":", before, name);
	export_write_text(out, value);
}

/* Members that nothing is known of are left out. */
static void write_line(FILE *out, const struct export_frame *frame, size_t index)
{
	const struct export_line *line = &frame->lines[index];

	write_member(out, "{", "function", line->function);
	if (line->symbol[0])
		write_member(out, ",", "symbol", line->symbol);
	if (line->file[0]) {
		write_member(out, ",", "file", line->file);
		fprintf(out, ",\"line\":%d", line->line);
	}
	if (frame->module) {
		write_member(out, ",", "module", frame->module->path);
		if (frame->module->build_id[0])
			write_member(out, ",", "build_id", frame->module->build_id);
		fprintf(out, ",\"offset\":%" PRIu64, frame->address - frame->module->start);
	}
	if (index + 1 < frame->line_count)
		fputs(",\"inlined\":true", out);
	fputc('}', out);
}

static void write_sum(FILE *out, const struct sum *sum, const struct export_info *info)
{
	const struct export_labels *labels = sum->labels;

	write_member(out, "{", "trace_type", info->trace_type);
	write_member(out, ",", "query_id", labels->query_id);
	write_member(out, ",", "thread", labels->thread);
	write_member(out, ",", "database", labels->database);
	write_member(out, ",", "statement", labels->statement);
	fprintf(out, ",\"samples\":%" PRId64 ",\"weight\":%" PRId64, sum->samples, sum->weight);
	if (strcmp(info->unit, UNIT_NS) == 0) {
		fprintf(out, ",\"ns\":%" PRId64, sum->value);
	} else {
		fprintf(out, ",\"value\":%" PRId64, sum->value);
		write_member(out, ",", "unit", info->unit);
	}
	fprintf(out, ",\"truncated\":%s,\"frames\":[", sum->stack->is_truncated ? "true" : "false");
	for (size_t i = 0; i < sum->stack->count; i++)
		for (size_t j = 0; j < sum->stack->frames[i]->line_count; j++) {
			fputs(i || j ? "," : "", out);
			write_line(out, sum->stack->frames[i], j);
		}
	fputs("]}", out);
}

static bool end_json(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (complete) {
		fputc('[', writer->out);
		for (size_t i = 0; i < writer->sums.list.count; i++) {
			fputs(i ? ",\n" : "\n", writer->out);
			write_sum(writer->out, &writer->sums.list.items[i], writer->info);
		}
		fputs("\n]\n", writer->out);
	}
	bool written = !ferror(writer->out);
	sums_free(&writer->sums);
	return written;
}

const struct export_format export_json = {
	.name = "json",
	.summary = "an object a stack, all that is known; samples, periods, ns",
	.writer_size = sizeof(struct writer),
	.add = add_json,
	.end = end_json,
};
