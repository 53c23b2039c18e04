/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for the user's own programs: an object of tables. Data that samples share is written once
 * and named by its place in its table, counted from 0. A stack's frames are leaf first, as
 * in trace_log; of a frame's lines, functions that were inlined come before the one that
 * they were inlined into. `samples` has one object for each stack of each query and thread;
 * `value` is in `unit`. Members that nothing is known of are left out.
 *
 *   jq -r '. as {$labels, $stacks, $frames} | .samples[]
 *       | select($labels[.labels].query_id == "big sort")
 *       | [.value, $frames[$stacks[.stack].frames[0]].lines[0].function] | @tsv'
 */
#include <inttypes.h>

#include "base/index.h"
#include "base/json.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/sums.h"
#include "export/text.h"
#include "label/pairs.h"

struct writer {
	EXPORT_WRITER;
	struct sums sums;
	/* By number. */
	VECTOR(const struct export_stack *) stacks;
	VECTOR(const struct export_frame *) frames;
	VECTOR(const struct export_module *) modules;
	VECTOR(const struct export_labels *) labels;
	/* Statements get their numbers here. */
	struct index statement_index;
	VECTOR(const char *) statements;
};

/* --- the tables ------------------------------------------------------------------ */

static bool keep_frame(struct writer *writer, const struct export_frame *frame)
{
	return EXPORT_KEEP(&writer->frames, frame) &&
	       (!frame->module || EXPORT_KEEP(&writer->modules, frame->module));
}

static bool keep_stack(struct writer *writer, const struct export_stack *stack)
{
	if (stack->number < writer->stacks.count && writer->stacks.items[stack->number])
		return true;
	for (size_t i = 0; i < stack->count; i++)
		if (!keep_frame(writer, stack->frames[i]))
			return false;
	return EXPORT_KEEP(&writer->stacks, stack);
}

/* Equal texts are one text, see names.h. */
static struct hash statement_key(const struct export_labels *labels)
{
	return hash_words(&(uint64_t){ (uintptr_t)labels->statement }, 1);
}

static bool keep_labels(struct writer *writer, const struct export_labels *labels)
{
	const char **statement =
		index_item(&writer->statement_index, statement_key(labels), &writer->statements);

	if (!statement)
		return false;
	*statement = labels->statement;
	return EXPORT_KEEP(&writer->labels, labels);
}

static bool add_json(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;

	return keep_stack(writer, sample->stack) && keep_labels(writer, sample->labels) &&
	       sums_add(&writer->sums, sample);
}

/* --- writing --------------------------------------------------------------------- */

static void write_member(FILE *out, const char *before, const char *name, const char *value)
{
	fprintf(out, "%s\"%s\":", before, name);
	export_write_text(out, value);
}

static void write_module(struct writer *writer, const struct export_module *module)
{
	write_member(writer->out, "{", "path", module->path);
	if (module->build_id[0])
		write_member(writer->out, ",", "build_id", module->build_id);
	fputc('}', writer->out);
}

static void write_line(FILE *out, const struct export_line *line)
{
	write_member(out, "{", "function", line->function);
	if (line->symbol[0])
		write_member(out, ",", "symbol", line->symbol);
	if (line->file[0]) {
		write_member(out, ",", "file", line->file);
		fprintf(out, ",\"line\":%d", line->line);
	}
	fputc('}', out);
}

static void write_frame(struct writer *writer, const struct export_frame *frame)
{
	fputc('{', writer->out);
	if (frame->module)
		fprintf(writer->out, "\"module\":%" PRIu32 ",\"offset\":%" PRIu64 ",", frame->module->number,
		        frame->address - frame->module->start);
	fputs("\"lines\":[", writer->out);
	for (size_t i = 0; i < frame->line_count; i++) {
		fputs(i ? "," : "", writer->out);
		write_line(writer->out, &frame->lines[i]);
	}
	fputs("]}", writer->out);
}

static void write_stack(struct writer *writer, const struct export_stack *stack)
{
	fputs("{\"frames\":[", writer->out);
	for (size_t i = 0; i < stack->count; i++)
		export_write_number(writer->out, i ? "," : "", stack->frames[i]->number);
	fprintf(writer->out, "]%s}", stack->is_truncated ? ",\"truncated\":true" : "");
}

static void write_statement(struct writer *writer, const char *statement)
{
	export_write_text(writer->out, statement);
}

static void write_labels(struct writer *writer, const struct export_labels *labels)
{
	write_member(writer->out, "{", "query_id", labels->query_id);
	write_member(writer->out, ",", "thread", labels->thread);
	write_member(writer->out, ",", "database", labels->database);
	if (labels->labels[0]) {
		fputs(",\"labels\":", writer->out);
		json_write_made(writer->out, labels->labels, label_set_object(labels->labels));
	}
	fprintf(writer->out, ",\"statement\":%" PRIu32 "}",
	        index_find(&writer->statement_index, statement_key(labels)));
}

static void write_sum(struct writer *writer, struct sum sum)
{
	export_write_number(writer->out, "{\"stack\":", sum.stack->number);
	export_write_number(writer->out, ",\"labels\":", sum.labels->number);
	export_write_number(writer->out, ",\"samples\":", sum.samples);
	export_write_number(writer->out, ",\"weight\":", sum.weight);
	export_write_number(writer->out, ",\"value\":", sum.value);
	fputc('}', writer->out);
}

/* A member of the whole: the table's items, a line each. */
#define WRITE_TABLE(writer, name, size, item_at, write_item)                                                 \
	do {                                                                                                 \
		fputs(",\n\"" name "\":[", (writer)->out);                                                   \
		for (size_t i = 0; i < (size); i++) {                                                        \
			fputs(i ? ",\n" : "\n", (writer)->out);                                              \
			write_item((writer), item_at);                                                       \
		}                                                                                            \
		fputs("]", (writer)->out);                                                                   \
	} while (0)

static void write_all(struct writer *writer)
{
	write_member(writer->out, "{", "trace_type", writer->info->trace_type);
	write_member(writer->out, ",", "unit", writer->info->unit);
	WRITE_TABLE(writer, "modules", writer->modules.count, writer->modules.items[i], write_module);
	WRITE_TABLE(writer, "frames", writer->frames.count, writer->frames.items[i], write_frame);
	WRITE_TABLE(writer, "stacks", writer->stacks.count, writer->stacks.items[i], write_stack);
	WRITE_TABLE(writer, "statements", writer->statements.count, writer->statements.items[i],
	            write_statement);
	WRITE_TABLE(writer, "labels", writer->labels.count, writer->labels.items[i], write_labels);
	WRITE_TABLE(writer, "samples", sums_count(&writer->sums), sums_at(&writer->sums, i), write_sum);
	fputs("}\n", writer->out);
}

static bool end_json(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (complete)
		write_all(writer);
	bool written = !ferror(writer->out);
	sums_free(&writer->sums);
	vector_free(&writer->stacks);
	vector_free(&writer->frames);
	vector_free(&writer->modules);
	vector_free(&writer->labels);
	vector_free(&writer->statements);
	index_free(&writer->statement_index);
	return written;
}

const struct export_format export_json = {
	.name = "json",
	.summary = "tables with all data; samples, periods, ns",
	.writer_size = sizeof(struct writer),
	.add = add_json,
	.end = end_json,
};
