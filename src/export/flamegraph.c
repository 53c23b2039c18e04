/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph for the browser: one HTML file with everything that it needs. The page (page/) is bundled
 * with its libraries when queryprof is built. This code only inserts the data, as JSON tables that
 * page/tree.mjs explains.
 * A build without node and npm has no page; the format is `missing` then.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/tally.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/functions.h"
#include "export/groups.h"
#include "export/sums.h"
#include "export/text.h"
#include "label/pairs.h"

#ifdef QUERYPROF_FLAME_GRAPH_PAGE

/* The page, see flamegraph_page.S. */
extern const char flame_graph_page[], flame_graph_page_end[];

static const char data_marker[] = "@DATA@";

/* The original texts may be freed before they are written. There may be millions. */
struct query {
	size_t id; /* where its text begins, in `ids` */
	const char *database;
	int64_t value;
	uint32_t statement;
	uint8_t side;
	bool is_there;
};

/* A query whose run has not ended: the index of its query, and its statement. */
struct live_query {
	bool is_there;
	uint32_t query, statement;
};

struct program {
	const char *path; /* an interpreter's script; "": not known */
	uint32_t side;
	int64_t value;
};

/* The common data of samples with the same labels, as numbers. */
struct labelled {
	const struct export_labels *labels; /* NULL: not known yet */
	const struct export_labels *part;   /* represents all labels of a run that are equal here */
	uint32_t query, set, program, statement;
};

/* From the first sample to the last; ns since 1970. */
struct side {
	bool has_samples;
	int64_t first_ns, last_ns;
};

/* The samples of a type. */
struct type {
	const char *trace_type;
	struct sums sums;
};

/* Written samples of a type. */
struct block {
	const char *trace_type;
	size_t count;
};

struct writer {
	EXPORT_WRITER;
	struct side sides[2];
	struct index program_index;
	VECTOR(struct program) programs;
	VECTOR(struct type) types;
	struct groups statements;
	VECTOR(int64_t) runs;    /* of each statement, on each side */
	struct tally query_rows; /* by the query's hash: its index in `queries` */
	VECTOR(struct query) queries;
	VECTOR(struct live_query) live_queries; /* by number */
	VECTOR(char) ids;                       /* of queries */
	struct index set_index, part_index;
	VECTOR(const char *) sets;                  /* of labels */
	VECTOR(const struct export_labels *) parts; /* the first labels of each run with the same set */
	VECTOR(struct labelled) labelled;           /* by the labels' number */
	/* Used while it writes. */
	const char *page_end; /* the page after the data; NULL: nothing is written */
	bool has_samples;     /* a sample was written */
	VECTOR(struct block) blocks;
	struct functions functions;
	VECTOR(uint32_t) leaves; /* by the stack's number: its leaf's node, from 1; 0: not known yet */
	struct index rest_index; /* of stacks that others extend by a wait */
	VECTOR(uint32_t) rests;
	struct tally nodes; /* one word: the parent's number, or NODE_ROOT, then the function's */
};

/* --- queries --------------------------------------------------------------------- */

/* By id and statement, because a user's own id may belong to several statements. */
static struct hash query_key(const struct export_labels *labels)
{
	const struct hash id = hash_bytes(labels->query_id, strlen(labels->query_id));
	const uint64_t words[] = { labels->side, id.first, id.second, (uint64_t)labels->statement_hash };
	return hash_words(words, 4);
}

/* False: no memory. */
static bool make_query(struct writer *writer, const struct export_labels *labels, struct live_query *of)
{
	const struct hash key = query_key(labels);
	const size_t id = writer->ids.count, size = strlen(labels->query_id) + 1;

	writer->query_rows.keys = writer->query_rows.width = 2;
	const size_t row =
		tally_row(&writer->query_rows, (const int64_t[]){ (int64_t)key.first, (int64_t)key.second });
	struct query *query = row == TALLY_NONE ? NULL : vector_at(&writer->queries, row);
	*of = (struct live_query){ true, (uint32_t)row, groups_find(&writer->statements, labels) };
	if (!query || of->statement == GROUPS_NO_MEMORY)
		return false;
	if (query->is_there)
		return true;
	int64_t *runs = vector_at(&writer->runs, 2 * (size_t)of->statement + labels->side);
	if (!runs || !vector_reserve(&writer->ids, id + size))
		return false;
	*runs = labels->statement_runs;
	memcpy(writer->ids.items + id, labels->query_id, size);
	writer->ids.count += size;
	*query = (struct query){ .id = id,
		                 .database = labels->database,
		                 .statement = of->statement,
		                 .side = (uint8_t)labels->side,
		                 .is_there = true };
	return true;
}

/* False: no memory. */
static bool find_query(struct writer *writer, const struct export_labels *labels, struct labelled *of)
{
	struct live_query *live = vector_at(&writer->live_queries, labels->query);

	if (!live || (!live->is_there && !make_query(writer, labels, live)))
		return false;
	of->query = live->query;
	of->statement = live->statement;
	return true;
}

/* All threads of a run are one part. False: no memory. */
static bool find_part(struct writer *writer, const struct export_labels *labels, struct labelled *of)
{
	const uint64_t set_words[] = { (uintptr_t)labels->labels };
	const char **set = index_item(&writer->set_index, hash_words(set_words, 1), &writer->sets);

	if (!set)
		return false;
	*set = labels->labels;
	of->set = (uint32_t)(set - writer->sets.items);
	const uint64_t words[] = { labels->query, of->set };
	const struct export_labels **part =
		index_item(&writer->part_index, hash_words(words, 2), &writer->parts);
	if (!part)
		return false;
	if (!*part)
		*part = labels;
	of->part = *part;
	return true;
}

/* For the page's title. False: no memory. */
static bool find_program(struct writer *writer, const struct export_labels *labels, struct labelled *of)
{
	const char *path = labels->script[0] ? labels->script : labels->program;
	uint64_t words[] = { labels->side, (uintptr_t)path };
	struct program *program = index_item(&writer->program_index, hash_words(words, 2), &writer->programs);

	if (!program)
		return false;
	program->path = path;
	program->side = labels->side;
	of->program = (uint32_t)(program - writer->programs.items);
	return true;
}

/* NULL: no memory. */
static const struct labelled *find_labelled(struct writer *writer, const struct export_labels *labels)
{
	struct labelled *of = vector_at(&writer->labelled, labels->number);

	if (!of || of->labels)
		return of;
	if (!find_query(writer, labels, of) || !find_program(writer, labels, of) ||
	    !find_part(writer, labels, of))
		return NULL;
	of->labels = labels;
	return of;
}

static void add_time(struct side *side, int64_t time_ns)
{
	if (!side->has_samples || time_ns < side->first_ns)
		side->first_ns = time_ns;
	if (!side->has_samples || time_ns > side->last_ns)
		side->last_ns = time_ns;
	side->has_samples = true;
}

/* NULL: no memory. There are few. */
static struct sums *find_sums(struct writer *writer, const char *trace_type)
{
	for (size_t i = 0; i < writer->types.count; i++)
		if (writer->types.items[i].trace_type == trace_type ||
		    strcmp(writer->types.items[i].trace_type, trace_type) == 0)
			return &writer->types.items[i].sums;
	struct type *type = vector_add(&writer->types);
	if (type)
		type->trace_type = trace_type;
	return type ? &type->sums : NULL;
}

static bool add_flamegraph(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	const struct labelled *of = find_labelled(writer, sample->labels);
	struct export_sample bare = *sample;
	struct sums *sums = find_sums(writer, sample->trace_type);

	/* The sums are ordered by the shown type. */
	bare.value = sample->is_other ? 0 : sample->value;
	if (!of || !sums)
		return false;
	writer->statements.list.items[of->statement].value += bare.value;
	writer->queries.items[of->query].value += bare.value;
	writer->programs.items[of->program].value += bare.value;
	add_time(&writer->sides[sample->labels->side], sample->time_ns);
	bare.value = sample->value;
	bare.labels = of->part;
	return sums_add(sums, &bare);
}

/* --- the tree -------------------------------------------------------------------- */

#define NODE_ROOT UINT32_MAX /* the parent of the root nodes */
#define NODE_NO_MEMORY (UINT32_MAX - 1)

static uint32_t find_node(struct writer *writer, uint32_t parent, uint32_t function)
{
	writer->nodes.keys = writer->nodes.width = 1;
	const size_t node =
		tally_row(&writer->nodes, &(int64_t){ (int64_t)((uint64_t)parent << 32 | function) });

	return node == TALLY_NONE ? NODE_NO_MEMORY : (uint32_t)node;
}

static uint32_t find_frame(struct writer *writer, uint32_t node, const struct export_frame *frame)
{
	for (size_t i = frame->line_count; node != NODE_NO_MEMORY && i-- > 0;) {
		uint32_t function = functions_add(&writer->functions, frame, i);
		node = function == FUNCTIONS_NO_MEMORY ? NODE_NO_MEMORY : find_node(writer, node, function);
	}
	return node;
}

/* The node of the stack's leaf. */
static uint32_t make_leaf(struct writer *writer, const struct export_stack *stack)
{
	uint32_t node = NODE_ROOT;

	for (size_t i = stack->count; node != NODE_NO_MEMORY && i-- > 0;)
		node = find_frame(writer, node, export_stack_frame(stack, i));
	return node;
}

/* NODE_ROOT is stored as 0, so it is computed again, which is fast without frames. */
static uint32_t find_rest(struct writer *writer, const struct export_stack *stack)
{
	const struct hash key = hash_words(&(uint64_t){ (uintptr_t)stack }, 1);
	uint32_t *node = index_item(&writer->rest_index, key, &writer->rests);

	if (node && !*node)
		*node = make_leaf(writer, stack) + 1;
	return node ? *node - 1 : NODE_NO_MEMORY;
}

static uint32_t find_leaf(struct writer *writer, const struct sums *sums, struct sum sum)
{
	uint32_t *leaf = vector_at(&writer->leaves, sum.stack);

	if (leaf && !*leaf) {
		const struct export_stack *stack = sums_stack(sums, sum);

		*leaf = (stack->rest ? find_frame(writer, find_rest(writer, stack->rest),
		                                  export_stack_frame(stack, 0))
		                     : make_leaf(writer, stack)) +
		        1; /* NODE_ROOT is stored as 0 */
	}
	return leaf ? *leaf - 1 : NODE_NO_MEMORY;
}

/* The page's number of the node: -1 for the root. */
static int64_t page_node(uint32_t node)
{
	return node == NODE_ROOT ? -1 : (int64_t)node;
}

/* --- the data -------------------------------------------------------------------- */

static bool write_sum(struct writer *writer, const struct sums *sums, struct sum sum)
{
	const uint32_t node = find_leaf(writer, sums, sum);
	const struct labelled *of = &writer->labelled.items[sum.labels];
	struct block *block = &writer->blocks.items[writer->blocks.count - 1];
	char row[5 * EXPORT_NUMBER_MAX + sizeof(",\n,,,,")], *to = row;

	if (node == NODE_NO_MEMORY)
		return false;
	to = export_put_number(to, writer->has_samples ? ",\n" : "\n", page_node(node));
	to = export_put_number(to, ",", of->query);
	to = export_put_number(to, ",", of->set);
	to = export_put_number(to, ",", sum.samples);
	to = export_put_number(to, ",", sum.value);
	export_write_row(writer->out, row, to);
	writer->has_samples = true;
	block->count++;
	return true;
}

static bool write_sums(void *context, const struct sums *sums, const struct sum *first, size_t count)
{
	struct writer *writer = context;

	for (size_t i = 0; i < count; i++) {
		if (i + SUMS_AHEAD < count)
			SUMS_FETCH(&writer->labelled, first[i + SUMS_AHEAD].labels);
		if (!write_sum(writer, sums, first[i]))
			return false;
	}
	return true;
}

/* Writes the types of the samples as consecutive blocks. */
static void write_blocks(struct writer *writer)
{
	bool is_first = true;

	fputs("\"types\":[", writer->out);
	for (size_t i = 0; i < writer->blocks.count; i++) {
		if (!writer->blocks.items[i].count)
			continue;
		fputs(is_first ? "[" : ",[", writer->out);
		is_first = false;
		export_write_text(writer->out, writer->blocks.items[i].trace_type);
		fprintf(writer->out, ",%zu]", writer->blocks.items[i].count);
	}
	fputs("],\n", writer->out);
}

static void write_nodes(const struct writer *writer)
{
	fputs("\"nodes\":[", writer->out);
	for (size_t i = 0; i < writer->nodes.count; i++) {
		const uint64_t node = (uint64_t)*tally_at(&writer->nodes, i);
		char row[2 * EXPORT_NUMBER_MAX + sizeof(",,")], *to = row;

		to = export_put_number(to, i ? "," : "", page_node((uint32_t)(node >> 32)));
		to = export_put_number(to, ",", (uint32_t)node);
		export_write_row(writer->out, row, to);
	}
	fputs("],\n", writer->out);
}

/* Each is an object in a text, so that a stranger's file cannot affect the page. */
static bool write_sets(const struct writer *writer)
{
	bool fine = true;

	fputs("\"labels\":[", writer->out);
	for (size_t i = 0; fine && i < writer->sets.count; i++) {
		char *set = strndup(writer->sets.items[i], label_set_object(writer->sets.items[i]));
		fputs(i ? ",\n" : "\n", writer->out);
		fine = set != NULL;
		export_write_text(writer->out, fine ? set : "");
		free(set);
	}
	fputs("],\n", writer->out);
	return fine;
}

/* Two modules with the same path, such as an old and a new version, remain two. */
static bool write_functions(const struct writer *writer)
{
	VECTOR(const struct export_module *) modules = { 0 };
	bool fine = true;

	fputs("\"functions\":[", writer->out);
	for (size_t i = 0; fine && i < writer->functions.list.count; i++) {
		const struct export_function *function = &writer->functions.list.items[i];
		const struct export_module *module = function->module;
		fputs(i ? ",\n[" : "\n[", writer->out);
		export_write_text(writer->out, function->name);
		fprintf(writer->out, ",%" PRId64 ",", module ? (int64_t)module->number : -1);
		export_write_text(writer->out, function->file);
		fputc(']', writer->out);
		fine = !module || EXPORT_KEEP(&modules, module);
	}
	fputs("],\n\"modules\":[", writer->out);
	for (size_t i = 0; fine && i < modules.count; i++) {
		fputs(i ? "," : "", writer->out);
		export_write_text(writer->out, modules.items[i]->name);
	}
	fputs("],\n", writer->out);
	vector_free(&modules);
	return fine;
}

/* Writes the statements by descending value, and the queries with their numbers. */
static bool write_queries(struct writer *writer)
{
	uint32_t *order = groups_order(&writer->statements);
	uint32_t *marker = calloc(writer->statements.list.count + 1, sizeof(*marker));
	bool fine = order && marker && vector_at(&writer->runs, 2 * writer->statements.list.count + 1);

	fputs("\"statements\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->statements.list.count; i++) {
		marker[order[i]] = i;
		fputs(i ? ",\n" : "\n", writer->out);
		export_write_text(writer->out, writer->statements.list.items[order[i]].name);
	}
	fputs("],\n\"runs\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->statements.list.count; i++)
		fprintf(writer->out, "%s%" PRId64 ",%" PRId64, i ? "," : "", writer->runs.items[2 * order[i]],
		        writer->runs.items[2 * order[i] + 1]);
	fputs("],\n\"queries\":[", writer->out);
	for (size_t i = 0; fine && i < writer->queries.count; i++) {
		const struct query *query = &writer->queries.items[i];
		fprintf(writer->out, "%s[%" PRIu32 ",", i ? ",\n" : "\n", marker[query->statement]);
		export_write_text(writer->out, writer->ids.items + query->id);
		fputc(',', writer->out);
		export_write_text(writer->out, query->database);
		fprintf(writer->out, ",%" PRId64 ",%d]", query->value, query->side);
	}
	fputs("]", writer->out);
	free(order);
	free(marker);
	return fine;
}

/* Times are in ms, because a JavaScript number cannot hold ns. */
static void write_title(const struct writer *writer)
{
	fputs("\"times\":[", writer->out);
	for (size_t i = 0; i < 2 && writer->sides[i].has_samples; i++)
		fprintf(writer->out, "%s[%" PRId64 ",%" PRId64 "]", i ? "," : "",
		        writer->sides[i].first_ns / 1000000, writer->sides[i].last_ns / 1000000);
	fputs("],\n\"programs\":[", writer->out);
	for (size_t i = 0; i < writer->programs.count; i++) {
		const struct program *program = &writer->programs.items[i];
		fputs(i ? ",\n[" : "\n[", writer->out);
		export_write_text(writer->out, program->path);
		fprintf(writer->out, ",%" PRIu32 ",%" PRId64 "]", program->side, program->value);
	}
	fputs("],\n", writer->out);
}

static void begin_data(struct writer *writer)
{
	const char *const sides[] = { writer->info->title, writer->info->compared };
	fputs("{\"sides\":[", writer->out);
	for (size_t i = 0; i < 2 && sides[i]; i++) {
		fputs(i ? "," : "", writer->out);
		export_write_text(writer->out, sides[i]);
	}
	fputs("],\"trace_type\":", writer->out);
	export_write_text(writer->out, writer->info->trace_type);
	fputs(",\"unit\":", writer->out);
	export_write_text(writer->out, writer->info->unit);
	fputs(",\n\"samples\":[", writer->out);
}

/* The samples come first, because writing them creates the nodes, and these create the functions. */
static bool end_data(struct writer *writer)
{
	fputs("],\n", writer->out);
	write_blocks(writer);
	write_title(writer);
	write_nodes(writer);
	bool fine = write_sets(writer) && write_functions(writer) && write_queries(writer);
	fputs("}\n", writer->out);
	return fine;
}

/* False: the page has no place for data, which cannot happen. */
static bool begin_page(struct writer *writer)
{
	const size_t size = (size_t)(flame_graph_page_end - flame_graph_page);
	const char *marker = memmem(flame_graph_page, size, data_marker, sizeof(data_marker) - 1);

	if (!marker)
		return false;
	fwrite(flame_graph_page, 1, (size_t)(marker - flame_graph_page), writer->out);
	begin_data(writer);
	writer->page_end = marker + sizeof(data_marker) - 1;
	return true;
}

static void forget_ended(struct writer *writer, int64_t now_ns)
{
	for (size_t i = 0; i < writer->labelled.count; i++) {
		struct labelled *of = &writer->labelled.items[i];

		if (!of->labels || !sums_has_ended(of->labels->last_ns, now_ns))
			continue;
		writer->live_queries.items[of->labels->query].is_there = false;
		of->labels = NULL;
	}
	index_free(&writer->part_index);
	writer->parts.count = 0;
}

static bool flush_flamegraph(void *of, int64_t now_ns, size_t *left)
{
	struct writer *writer = of;
	bool fine = writer->page_end || begin_page(writer);

	for (size_t i = 0; fine && i < writer->types.count; i++) {
		struct type *type = &writer->types.items[i];

		fine = vector_push(&writer->blocks, (struct block){ type->trace_type, 0 }) &&
		       sums_flush(&type->sums, now_ns, true, write_sums, writer);
		*left += sums_count(&type->sums);
	}
	forget_ended(writer, now_ns);
	return fine && !ferror(writer->out);
}

static bool end_flamegraph(void *ended, bool complete)
{
	struct writer *writer = ended;
	bool fine = true;

	if (complete) {
		fine = flush_flamegraph(writer, INT64_MAX, &(size_t){ 0 }) && end_data(writer);
		if (fine)
			fwrite(writer->page_end, 1, (size_t)(flame_graph_page_end - writer->page_end),
			       writer->out);
		fine &= !ferror(writer->out);
	}
	for (size_t i = 0; i < writer->types.count; i++)
		sums_free(&writer->types.items[i].sums);
	vector_free(&writer->types);
	vector_free(&writer->blocks);
	groups_free(&writer->statements);
	vector_free(&writer->runs);
	functions_free(&writer->functions);
	tally_free(&writer->query_rows);
	vector_free(&writer->live_queries);
	index_free(&writer->set_index);
	index_free(&writer->part_index);
	index_free(&writer->program_index);
	vector_free(&writer->queries);
	vector_free(&writer->ids);
	vector_free(&writer->sets);
	vector_free(&writer->parts);
	vector_free(&writer->labelled);
	vector_free(&writer->leaves);
	vector_free(&writer->rests);
	index_free(&writer->rest_index);
	tally_free(&writer->nodes);
	vector_free(&writer->programs);
	return fine;
}
#endif

const struct export_format export_flamegraph = {
	.name = "flamegraph",
	.compares = true,
	.has_times = true,
	.summary = "an HTML page in one file, for the browser; time",
#ifdef QUERYPROF_FLAME_GRAPH_PAGE
	.writer_size = sizeof(struct writer),
	.add = add_flamegraph,
	.flush = flush_flamegraph,
	.end = end_flamegraph,
#else
	.missing = "built without node and npm",
#endif
};
