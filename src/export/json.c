/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for the user's own programs: an object of tables. Data that samples share is written once
 * and identified by its index in its table. A stack's frames are leaf first, as in trace_log; among
 * a frame's lines, inlined functions come before the one that contains them. `samples` has one
 * object for each stack of each query and thread; `value` is in `unit`. Unknown members are left
 * out. `samples` come first, because each is written when its run has ended; the tables are
 * complete only at the end.
 *
 *   jq -r '. as {$labels, $stacks, $frames} | .samples[]
 *       | select($labels[.labels].query_id == "big sort")
 *       | [.value, $frames[$stacks[.stack].frames[0]].lines[0].function] | @tsv'
 */
#include <inttypes.h>
#include <string.h>

#include "base/index.h"
#include "base/json.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/sums.h"
#include "export/text.h"
#include "label/pairs.h"

/* The tables' data of a query and of labels, whose own texts may be freed before the tables are written. */
struct query {
	size_t id; /* where its text begins, in `ids` */
	const char *database;
	uint32_t statement;
};

/* Texts that the labels of many queries share. */
struct shared {
	const char *thread, *labels;
};

/* Labels: nearly as many as samples, so only indexes. */
struct row {
	uint32_t shared, query;
};

/* Labels whose run has not ended. */
struct current {
	const struct export_labels *labels; /* NULL: none */
	uint32_t row;
};

struct writer {
	EXPORT_WRITER;
	struct sums sums;
	bool is_begun, has_samples; /* written: the head, a sample */
	/* By number. */
	VECTOR(const struct export_stack *) stacks;
	VECTOR(const struct export_frame *) frames;
	VECTOR(const struct export_module *) modules;
	VECTOR(struct current) labels;
	VECTOR(uint32_t) queries; /* their indexes in query_rows, from 1; 0: none */
	/* The tables. */
	VECTOR(struct row) rows; /* of labels */
	struct index shared_index;
	VECTOR(struct shared) shared;
	VECTOR(struct query) query_rows;
	VECTOR(char) ids;
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
		if (!keep_frame(writer, export_stack_frame(stack, i)))
			return false;
	return EXPORT_KEEP(&writer->stacks, stack);
}

/* Equal texts have equal pointers, see names.h. */
static bool keep_query(struct writer *writer, const struct export_labels *labels, uint32_t *number)
{
	const struct hash key = hash_words(&(uint64_t){ (uintptr_t)labels->statement }, 1);
	const char **statement = index_item(&writer->statement_index, key, &writer->statements);
	const size_t id = writer->ids.count, size = strlen(labels->query_id) + 1;

	if (!statement || !vector_reserve(&writer->ids, id + size) ||
	    !vector_push(
		    &writer->query_rows,
		    (struct query){ id, labels->database, (uint32_t)(statement - writer->statements.items) }))
		return false;
	*statement = labels->statement;
	memcpy(writer->ids.items + id, labels->query_id, size);
	writer->ids.count += size;
	*number = (uint32_t)writer->query_rows.count;
	return true;
}

static bool keep_labels(struct writer *writer, const struct export_labels *labels)
{
	struct current *current = vector_at(&writer->labels, labels->number);
	uint32_t *query = vector_at(&writer->queries, labels->query);
	const uint64_t words[] = { (uintptr_t)labels->thread, (uintptr_t)labels->labels };
	struct shared *shared = index_item(&writer->shared_index, hash_words(words, 2), &writer->shared);

	if (!current || !query || !shared || (!*query && !keep_query(writer, labels, query)))
		return false;
	*shared = (struct shared){ labels->thread, labels->labels };
	*current = (struct current){ labels, (uint32_t)writer->rows.count };
	return vector_push(&writer->rows,
	                   (struct row){ (uint32_t)(shared - writer->shared.items), *query - 1 });
}

static bool has_labels(const struct writer *writer, const struct export_labels *labels)
{
	return labels->number < writer->labels.count && writer->labels.items[labels->number].labels;
}

static bool add_json(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;

	return keep_stack(writer, sample->stack) &&
	       (has_labels(writer, sample->labels) || keep_labels(writer, sample->labels)) &&
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
	for (size_t i = 0; i < stack->count; i++) {
		char row[EXPORT_NUMBER_MAX + 2];

		export_write_row(writer->out, row,
		                 export_put_number(row, i ? "," : "", export_stack_frame(stack, i)->number));
	}
	fprintf(writer->out, "]%s}", stack->is_truncated ? ",\"truncated\":true" : "");
}

static void write_statement(struct writer *writer, const char *statement)
{
	export_write_text(writer->out, statement);
}

static void write_labels(struct writer *writer, const struct row *row)
{
	const struct query *query = &writer->query_rows.items[row->query];
	const struct shared *shared = &writer->shared.items[row->shared];

	write_member(writer->out, "{", "query_id", writer->ids.items + query->id);
	write_member(writer->out, ",", "thread", shared->thread);
	write_member(writer->out, ",", "database", query->database);
	if (shared->labels[0]) {
		fputs_unlocked(",\"labels\":", writer->out);
		json_write_made(writer->out, shared->labels, label_set_object(shared->labels));
	}
	char end[EXPORT_NUMBER_MAX + 32];
	export_write_row(writer->out, end,
	                 stpcpy(export_put_number(end, ",\"statement\":", query->statement), "}"));
}

static void write_sum(struct writer *writer, struct sum sum)
{
	char row[5 * EXPORT_NUMBER_MAX + 64], *at = row;

	at = export_put_number(at, writer->has_samples ? ",\n{\"stack\":" : "\n{\"stack\":", sum.stack);
	at = export_put_number(at, ",\"labels\":", writer->labels.items[sum.labels].row);
	at = export_put_number(at, ",\"samples\":", sum.samples);
	at = export_put_number(at, ",\"weight\":", sum.weight);
	at = export_put_number(at, ",\"value\":", sum.value);
	*at++ = '}';
	export_write_row(writer->out, row, at);
	writer->has_samples = true;
}

static bool write_sums(void *to, const struct sums *sums, const struct sum *first, size_t count)
{
	struct writer *writer = to;

	(void)sums;
	for (size_t i = 0; i < count; i++) {
		if (i + SUMS_AHEAD < count)
			SUMS_FETCH(&writer->labels, first[i + SUMS_AHEAD].labels);
		write_sum(writer, first[i]);
	}
	return true;
}

/* Writes the samples whose runs have ended. */
static bool flush_json(void *of, int64_t now_ns, size_t *left)
{
	struct writer *writer = of;

	if (!writer->is_begun) {
		write_member(writer->out, "{", "trace_type", writer->info->trace_type);
		write_member(writer->out, ",", "unit", writer->info->unit);
		fputs(",\n\"samples\":[", writer->out);
		writer->is_begun = true;
	}
	if (!sums_flush(&writer->sums, now_ns, false, write_sums, writer))
		return false;
	for (size_t i = 0; i < writer->labels.count; i++) {
		struct current *current = &writer->labels.items[i];

		if (!current->labels || !sums_has_ended(current->labels->last_ns, now_ns))
			continue;
		writer->queries.items[current->labels->query] = 0;
		current->labels = NULL;
	}
	*left += sums_count(&writer->sums);
	return !ferror(writer->out);
}

/* A member of the outermost object: the table's items, one per line. */
#define WRITE_TABLE(writer, name, size, item_at, write_item)                                                 \
	do {                                                                                                 \
		fputs(",\n\"" name "\":[", (writer)->out);                                                   \
		for (size_t i = 0; i < (size); i++) {                                                        \
			fputs_unlocked(i ? ",\n" : "\n", (writer)->out);                                     \
			write_item((writer), item_at);                                                       \
		}                                                                                            \
		fputs("]", (writer)->out);                                                                   \
	} while (0)

static void write_tables(struct writer *writer)
{
	fputs("]", writer->out);
	WRITE_TABLE(writer, "modules", writer->modules.count, writer->modules.items[i], write_module);
	WRITE_TABLE(writer, "frames", writer->frames.count, writer->frames.items[i], write_frame);
	WRITE_TABLE(writer, "stacks", writer->stacks.count, writer->stacks.items[i], write_stack);
	WRITE_TABLE(writer, "statements", writer->statements.count, writer->statements.items[i],
	            write_statement);
	WRITE_TABLE(writer, "labels", writer->rows.count, &writer->rows.items[i], write_labels);
	fputs("}\n", writer->out);
}

static bool end_json(void *ended, bool complete)
{
	struct writer *writer = ended;
	bool written = true;

	if (complete) {
		written = flush_json(writer, INT64_MAX, &(size_t){ 0 });
		if (written)
			write_tables(writer);
		written &= !ferror(writer->out);
	}
	sums_free(&writer->sums);
	vector_free(&writer->stacks);
	vector_free(&writer->frames);
	vector_free(&writer->modules);
	vector_free(&writer->labels);
	vector_free(&writer->queries);
	vector_free(&writer->rows);
	vector_free(&writer->shared);
	index_free(&writer->shared_index);
	vector_free(&writer->query_rows);
	vector_free(&writer->ids);
	vector_free(&writer->statements);
	index_free(&writer->statement_index);
	return written;
}

const struct export_format export_json = {
	.name = "json",
	.summary = "tables with all data; samples, periods, ns",
	.writer_size = sizeof(struct writer),
	.add = add_json,
	.flush = flush_json,
	.end = end_json,
};
