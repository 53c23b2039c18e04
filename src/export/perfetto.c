/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace events, JSON, for Perfetto and speedscope. Each thread is a track: spans are complete
 * events, samples are instants with their stack.
 *
 * Times count from the first one, which is in otherData, because JSON readers use doubles, which cannot hold
 * nanoseconds since 1970.
 *
 * The format distinguishes processes only by their ids, and two of a file may have the same id: in
 * containers, on different hosts, or one after the other. The first one keeps the id. A later one gets a
 * number that no process has, and its name contains its id.
 *
 * Events of a track must be nested. A statement that is still being stepped when its enclosing span ends is
 * not, so it becomes a pair of asynchronous events, a track of its own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/text.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/text.h"

#define PROCESS_IDS (1 << 22) /* Linux's PID_MAX_LIMIT: ids are less */

/* A process. */
struct track {
	bool is_named; /* false: its name was not written yet */
	int64_t id;
};

/* The part of a sample's event that comes from its stack: the leaf, then the rest. */
struct written {
	char *text; /* NULL: not yet */
	size_t leaf_size, size;
	uint32_t rest; /* the remaining frames, from 1, in `rests`; 0: none */
};

struct writer {
	EXPORT_WRITER;
	bool has_events;
	struct index processes; /* by their numbers in the file */
	VECTOR(struct track) tracks;
	struct index ids; /* ids that a process has kept */
	bool has_spans;
	int64_t process, thread;       /* of the previous span, as in the file */
	VECTOR(int64_t) ends;          /* of the spans that may contain the next one */
	VECTOR(struct written) stacks; /* by number */
	struct index rest_index;       /* of stacks that others extend by a wait */
	VECTOR(struct written) rests;
	FILE *text; /* in which a stack's text is put together, and what it has */
	char *characters;
	size_t size;
};

static void begin_file(const struct writer *writer)
{
	fprintf(writer->out,
	        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start_ns\":\"%" PRId64 "\"},\"traceEvents\":[",
	        writer->info->first_ns);
}

static FILE *begin_event(struct writer *writer)
{
	if (!writer->has_events)
		begin_file(writer);
	fputs_unlocked(writer->has_events ? ",\n" : "\n", writer->out);
	writer->has_events = true;
	return writer->out;
}

/* Microseconds with nanosecond digits. In a damaged file, times may have any value. */
static char *put_time(char *to, const char *before, int64_t at, int64_t since)
{
	int64_t ns;

	if (__builtin_sub_overflow(at, since, &ns))
		ns = 0;
	const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, part = size % 1000;

	to = export_put_number(stpcpy(to, before), ns < 0 ? "-" : "", (int64_t)(size / 1000));
	*to++ = '.';
	*to++ = (char)('0' + part / 100);
	*to++ = (char)('0' + part / 10 % 10);
	*to++ = (char)('0' + part % 10);
	return to;
}

#define ROW_MAX 160 /* characters: a few numbers and their names */

static void write_time(FILE *out, const char *before, int64_t at, int64_t since)
{
	char row[ROW_MAX];

	export_write_row(out, row, put_time(row, before, at, since));
}

static void write_member(FILE *out, const char *key, const char *text, const char *before)
{
	if (!text[0])
		return;
	fputs_unlocked(before, out);
	export_write_text(out, key);
	putc_unlocked(':', out);
	export_write_text(out, text);
}

static void write_name(struct writer *writer, const char *event, int64_t process, int64_t thread,
                       const char *name)
{
	FILE *out = begin_event(writer);

	fprintf(out,
	        "{\"ph\":\"M\",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"name\":\"%s\",\"args\":{\"name\":",
	        process, thread, event);
	export_write_text(out, name);
	fputs("}}", out);
}

/* The file's data of the process of a span or a sample. */
struct process {
	int64_t number, id, thread;
	const char *program, *host;
};

/* False: no memory. */
static bool name_process(struct writer *writer, const struct process *process, bool has_its_id, int64_t id)
{
	char *name = has_its_id ? text_format("%s", process->program)
	                        : text_format("%s (%" PRId64 " on %s)", process->program, process->id,
	                                      process->host);

	if (name && process->program[0])
		write_name(writer, "process_name", id, process->thread, name);
	free(name);
	return name;
}

/* NULL: no memory. */
static const struct track *find_track(struct writer *writer, const struct process *process)
{
	const struct hash number = hash_words(&(uint64_t){ (uint64_t)process->number }, 1),
			  id = hash_words(&(uint64_t){ (uint64_t)process->id }, 1);
	struct track *track = index_item(&writer->processes, number, &writer->tracks);

	if (!track || track->is_named)
		return track;
	bool keeps_id = index_find(&writer->ids, id) == INDEX_NONE;
	if (keeps_id && index_add(&writer->ids, id) == INDEX_NONE)
		return NULL;
	*track =
		(struct track){ true, keeps_id ? process->id : PROCESS_IDS + (track - writer->tracks.items) };
	return name_process(writer, process, keeps_id, track->id) ? track : NULL;
}

static void name_thread(struct writer *writer, const struct export_span *span, int64_t process)
{
	if (writer->has_spans && span->process == writer->process && span->thread_id == writer->thread)
		return;
	write_name(writer, "thread_name", process, span->thread_id, span->thread_name);
	writer->has_spans = true;
	writer->process = span->process;
	writer->thread = span->thread_id;
	writer->ends.count = 0;
}

static const char *category(const struct export_span *span)
{
	if (span->query_id[0])
		return "statement";
	return strncmp(span->name, "wait: ", 6) == 0 ? "wait" : "span";
}

static void write_span(FILE *out, const struct export_span *span, int64_t process)
{
	fprintf(out, "\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"cat\":\"%s\",\"name\":", process,
	        span->thread_id, category(span));
	export_write_text(out, span->name);
}

static void write_details(FILE *out, const struct export_span *span)
{
	static const char *const statuses[] = { "", "ok", "error" };

	fputs(",\"args\":{", out);
	write_member(out, "span_id", span->span_id, "");
	write_member(out, "trace_id", span->trace_id, ",");
	write_member(out, "parent_span_id", span->parent_id, ",");
	write_member(out, "query_id", span->query_id, ",");
	write_member(out, "status", statuses[span->status < 3 ? span->status : 0], ",");
	write_member(out, "unended", span->is_unended ? "yes" : "", ",");
	write_member(out, "file", span->file, ",");
	if (strcmp(span->attribute, "{}") != 0)
		write_member(out, "attribute", span->attribute, ",");
	fputs("}}", out);
}

static void write_pair(struct writer *writer, const struct export_span *span, int64_t process)
{
	for (int end = 0; end < 2; end++) {
		FILE *out = begin_event(writer);

		fprintf(out, "{\"ph\":\"%s\",\"id\":\"0x%s\",", end ? "e" : "b", span->span_id);
		write_span(out, span, process);
		write_time(out, ",\"ts\":", end ? span->end_ns : span->start_ns, writer->info->first_ns);
		write_details(out, span);
	}
}

static bool add_span(void *to, const struct export_span *span)
{
	struct writer *writer = to;
	const struct process process = { span->process, span->process_id, span->thread_id, span->program,
		                         span->host };
	const struct track *track = find_track(writer, &process);
	FILE *out;

	if (!track)
		return false;
	name_thread(writer, span, track->id);
	while (writer->ends.count && writer->ends.items[writer->ends.count - 1] <= span->start_ns)
		writer->ends.count--;
	if (writer->ends.count && writer->ends.items[writer->ends.count - 1] < span->end_ns) {
		write_pair(writer, span, track->id);
		return true;
	}
	out = begin_event(writer);
	fputs("{\"ph\":\"X\",", out);
	write_span(out, span, track->id);
	write_time(out, ",\"ts\":", span->start_ns, writer->info->first_ns);
	write_time(out, ",\"dur\":", span->end_ns, span->start_ns);
	write_details(out, span);
	return vector_push(&writer->ends, span->end_ns);
}

/* Writes the first `count` frames of the stack. */
static void write_frames(FILE *to, const char *before, const struct export_stack *stack, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct export_frame *frame = export_stack_frame(stack, i);

		for (size_t j = 0; j < frame->line_count; j++) {
			json_write_part(to, before, "<");
			json_write_part(to, frame->lines[j].function, "<");
			before = " < ";
		}
	}
}

/* NULL: no memory. One stream for all stacks, because each begins with a buffer of 8 KiB. */
static FILE *begin_text(struct writer *writer)
{
	if (!writer->text)
		writer->text = open_memstream(&writer->characters, &writer->size);
	else
		rewind(writer->text);
	return writer->text;
}

/* False: no memory. */
static bool end_text(struct writer *writer, struct written *made)
{
	if (fflush(writer->text) || ferror(writer->text) || !(made->text = malloc(writer->size)))
		return false;
	memcpy(made->text, writer->characters, writer->size);
	made->size = writer->size;
	return true;
}

/* 0: no memory. */
static uint32_t find_rest(struct writer *writer, const struct export_stack *stack)
{
	const struct hash key = hash_words(&(uint64_t){ (uintptr_t)stack }, 1);
	struct written *rest = index_item(&writer->rest_index, key, &writer->rests);
	FILE *to;

	if (rest && !rest->text) {
		if (!(to = begin_text(writer)))
			return 0;
		write_frames(to, " < ", stack, stack->count);
		fputc('"', to);
		if (!end_text(writer, rest))
			return 0;
	}
	return rest ? (uint32_t)(rest - writer->rests.items) + 1 : 0;
}

/* False: no memory. */
static bool make_stack(struct writer *writer, const struct export_stack *stack, struct written *made)
{
	FILE *to = begin_text(writer);

	if (!to)
		return false;
	export_write_text(to, stack->count ? export_stack_frame(stack, 0)->lines[0].function : "");
	fflush(to);
	made->leaf_size = writer->size;
	fputs(",\"unit\":", to);
	export_write_text(to, writer->info->unit);
	fputs(",\"stack\":\"", to);
	write_frames(to, "", stack, stack->rest ? 1 : stack->count);
	if (!stack->rest)
		fputc('"', to);
	return end_text(writer, made) && (!stack->rest || (made->rest = find_rest(writer, stack->rest)));
}

static bool add_sample(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	const struct export_labels *labels = sample->labels;
	const struct process process = { labels->process, labels->process_id, labels->thread_id,
		                         labels->program, labels->host };
	const struct track *track = find_track(writer, &process);
	struct written *stack = vector_at(&writer->stacks, sample->stack->number);
	char row[ROW_MAX], *to_row = row;
	FILE *out;

	if (!track || !stack || (!stack->text && !make_stack(writer, sample->stack, stack)))
		return false;
	out = begin_event(writer);
	to_row = export_put_number(to_row, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":", track->id);
	to_row = export_put_number(to_row, ",\"tid\":", labels->thread_id);
	to_row = stpcpy(to_row, ",\"cat\":\"sample\",\"name\":");
	export_write_row(out, row, to_row);
	fwrite_unlocked(stack->text, 1, stack->leaf_size, out);
	to_row = put_time(row, ",\"ts\":", sample->time_ns, writer->info->first_ns);
	to_row = export_put_number(to_row, ",\"args\":{\"value\":", sample->value);
	export_write_row(out, row, to_row);
	fwrite_unlocked(stack->text + stack->leaf_size, 1, stack->size - stack->leaf_size, out);
	if (stack->rest) {
		const struct written *rest = &writer->rests.items[stack->rest - 1];

		fwrite_unlocked(rest->text, 1, rest->size, out);
	}
	write_member(out, "query_id", labels->query_id, ",");
	fputs_unlocked("}}", out);
	return true;
}

/* It keeps nothing of labels. */
static bool flush_perfetto(void *of, int64_t now_ns, size_t *left)
{
	const struct writer *writer = of;

	(void)now_ns, (void)left;
	return !ferror(writer->out);
}

static bool end_perfetto(void *ended, bool complete)
{
	struct writer *writer = ended;

	for (size_t i = 0; i < writer->stacks.count; i++)
		free(writer->stacks.items[i].text);
	for (size_t i = 0; i < writer->rests.count; i++)
		free(writer->rests.items[i].text);
	vector_free(&writer->stacks);
	vector_free(&writer->rests);
	index_free(&writer->rest_index);
	if (writer->text)
		fclose(writer->text);
	free(writer->characters);
	vector_free(&writer->ends);
	vector_free(&writer->tracks);
	index_free(&writer->processes);
	index_free(&writer->ids);
	if (!complete)
		return true;
	if (!writer->has_events)
		begin_file(writer);
	fputs("\n]}\n", writer->out);
	return !ferror(writer->out);
}

const struct export_format export_perfetto = {
	.name = "perfetto",
	.summary = "runs, spans, samples, Chrome trace: ui.perfetto.dev; us",
	.writer_size = sizeof(struct writer),
	.has_runs = true,
	.labels_read = EXPORT_LABELS_RUN,
	.add = add_sample,
	.flush = flush_perfetto,
	.add_span = add_span,
	.end = end_perfetto,
};
