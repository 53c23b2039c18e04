/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph to look at in a browser: one HTML file with all that it needs. The
 * page (page/) is bundled with its libraries when queryprof is built; here only the
 * data are put into it, as tables in JSON that page/tree.mjs explains.
 *
 * A build without node and npm has no page; the format is `missing` then.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
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

struct node {
	uint32_t parent; /* NODE_ROOT: none */
	uint32_t function;
};

struct query {
	const struct export_labels *labels;
	uint32_t statement;
	int64_t value;
};

struct program {
	const char *path; /* of an interpreter its script's, "": not known */
	uint32_t side;
	int64_t value;
};

/* What samples under the same labels have in common, with numbers. */
struct labelled {
	const struct export_labels *part; /* stands for all that are the same here; NULL: not known yet */
	uint32_t query, set, program;
};

/* From the first sample to the last, since 1970. */
struct side {
	bool has_samples;
	int64_t first_ns, last_ns;
};

/* The samples of a type. */
struct type {
	const char *trace_type;
	struct sums sums;
};

struct writer {
	EXPORT_WRITER;
	struct side sides[2];
	struct index program_index;
	VECTOR(struct program) programs;
	VECTOR(struct type) types;
	struct groups statements;
	struct index query_index;
	VECTOR(struct query) queries;
	struct index set_index, part_index;
	VECTOR(const char *) sets;                  /* of labels */
	VECTOR(const struct export_labels *) parts; /* of each query those under one set: the first */
	VECTOR(struct labelled) labelled;           /* by the labels' number */
	/* While it writes. */
	struct functions functions;
	VECTOR(uint32_t) leaves; /* by the stack's number: its leaf's node, from 1; 0: not known yet */
	struct index rest_index; /* of stacks that others have above a wait */
	VECTOR(uint32_t) rests;
	struct index node_index;
	VECTOR(struct node) nodes;
};

/* --- queries --------------------------------------------------------------------- */

/* By id and statement: an id of the user's own may be that of several. */
static struct hash query_key(const struct export_labels *labels)
{
	uint64_t words[] = { labels->side, (uintptr_t)labels->query_id, (uint64_t)labels->statement_hash };
	return hash_words(words, 3);
}

/* Threads of a query are one part. False: no memory. */
static bool find_part(struct writer *writer, const struct export_labels *labels, struct labelled *of)
{
	const uint64_t set_words[] = { (uintptr_t)labels->labels };
	const char **set = index_item(&writer->set_index, hash_words(set_words, 1), &writer->sets);

	if (!set)
		return false;
	*set = labels->labels;
	of->set = (uint32_t)(set - writer->sets.items);
	const uint64_t words[] = { of->query, of->set };
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

	if (!of || of->part)
		return of;
	struct query *query = index_item(&writer->query_index, query_key(labels), &writer->queries);
	if (!query)
		return NULL;
	if (!query->labels)
		query->labels = labels;
	of->query = (uint32_t)(query - writer->queries.items);
	return find_program(writer, labels, of) && find_part(writer, labels, of) ? of : NULL;
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
		if (strcmp(writer->types.items[i].trace_type, trace_type) == 0)
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

	/* The order is that of the type that is shown at first. */
	bare.value = sample->is_other ? 0 : sample->value;
	uint32_t statement = groups_add(&writer->statements, &bare);
	if (!of || !sums || statement == GROUPS_NO_MEMORY)
		return false;
	struct query *query = &writer->queries.items[of->query];
	query->statement = statement;
	query->value += bare.value;
	writer->programs.items[of->program].value += bare.value;
	add_time(&writer->sides[sample->labels->side], sample->time_ns);
	bare.value = sample->value;
	bare.labels = of->part;
	return sums_add(sums, &bare);
}

/* --- the tree -------------------------------------------------------------------- */

#define NODE_ROOT UINT32_MAX /* "no node": the parent of those at the root */
#define NODE_NO_MEMORY (UINT32_MAX - 1)

static uint32_t find_node(struct writer *writer, uint32_t parent, uint32_t function)
{
	uint64_t words[] = { parent, function };
	struct node *node = index_item(&writer->node_index, hash_words(words, 2), &writer->nodes);

	if (!node)
		return NODE_NO_MEMORY;
	*node = (struct node){ parent, function };
	return (uint32_t)(node - writer->nodes.items);
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
		node = find_frame(writer, node, stack->frames[i]);
	return node;
}

/* NODE_ROOT stands for 0 here, and is found anew: no frame is quickly found. */
static uint32_t find_rest(struct writer *writer, const struct export_stack *stack)
{
	const struct hash key = hash_words(&(uint64_t){ (uintptr_t)stack }, 1);
	uint32_t *node = index_item(&writer->rest_index, key, &writer->rests);

	if (node && !*node)
		*node = make_leaf(writer, stack) + 1;
	return node ? *node - 1 : NODE_NO_MEMORY;
}

static uint32_t find_leaf(struct writer *writer, const struct export_stack *stack)
{
	uint32_t *leaf = vector_at(&writer->leaves, stack->number);

	if (leaf && !*leaf)
		*leaf = (stack->rest ? find_frame(writer, find_rest(writer, stack->rest), stack->frames[0])
		                     : make_leaf(writer, stack)) +
		        1; /* NODE_ROOT is 0: it is found anew */
	return leaf ? *leaf - 1 : NODE_NO_MEMORY;
}

/* The page's number of the node: -1 for the root. */
static int64_t page_node(uint32_t node)
{
	return node == NODE_ROOT ? -1 : (int64_t)node;
}

/* --- the data -------------------------------------------------------------------- */

static bool write_sum(struct writer *writer, struct sum sum)
{
	const uint32_t node = find_leaf(writer, sum.stack);
	const struct labelled *of = &writer->labelled.items[sum.labels->number];
	const int64_t numbers[] = { page_node(node), of->query, of->set, sum.samples, sum.value };

	if (node == NODE_NO_MEMORY)
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		export_write_number(writer->out, i ? "," : "", numbers[i]);
	return true;
}

static bool write_samples(struct writer *writer)
{
	bool fine = true;

	fputs("\"types\":[", writer->out);
	for (size_t i = 0; i < writer->types.count; i++) {
		fputs(i ? ",[" : "[", writer->out);
		export_write_text(writer->out, writer->types.items[i].trace_type);
		fprintf(writer->out, ",%zu]", sums_count(&writer->types.items[i].sums));
	}
	fputs("],\n\"samples\":[", writer->out);
	for (size_t i = 0; fine && i < writer->types.count; i++)
		for (size_t j = 0; fine && j < sums_count(&writer->types.items[i].sums); j++) {
			fputs(i || j ? ",\n" : "\n", writer->out);
			fine = write_sum(writer, sums_at(&writer->types.items[i].sums, j));
		}
	fputs("],\n", writer->out);
	return fine;
}

static void write_nodes(const struct writer *writer)
{
	fputs("\"nodes\":[", writer->out);
	for (size_t i = 0; i < writer->nodes.count; i++) {
		export_write_number(writer->out, i ? "," : "", page_node(writer->nodes.items[i].parent));
		export_write_number(writer->out, ",", writer->nodes.items[i].function);
	}
	fputs("],\n", writer->out);
}

/* Each an object in a text: the page must not be at the mercy of what a file calls one. */
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

/* Two modules of one path, as an old and a new version are, are two here. */
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

/* Statements, the one with the largest value first, and the queries with their numbers. */
static bool write_queries(const struct writer *writer)
{
	uint32_t *order = groups_order(&writer->statements);
	uint32_t *marker = calloc(writer->statements.list.count + 1, sizeof(*marker));
	int64_t *runs = calloc(2 * writer->statements.list.count + 2, sizeof(*runs)); /* of each side */
	bool fine = order && marker && runs;

	for (size_t i = 0; fine && i < writer->queries.count; i++) {
		const struct query *query = &writer->queries.items[i];
		runs[2 * query->statement + query->labels->side] = query->labels->statement_runs;
	}
	fputs("\"statements\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->statements.list.count; i++) {
		marker[order[i]] = i;
		fputs(i ? ",\n" : "\n", writer->out);
		export_write_text(writer->out, writer->statements.list.items[order[i]].name);
	}
	fputs("],\n\"runs\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->statements.list.count; i++)
		fprintf(writer->out, "%s%" PRId64 ",%" PRId64, i ? "," : "", runs[2 * order[i]],
		        runs[2 * order[i] + 1]);
	fputs("],\n\"queries\":[", writer->out);
	for (size_t i = 0; fine && i < writer->queries.count; i++) {
		const struct query *query = &writer->queries.items[i];
		fprintf(writer->out, "%s[%" PRIu32 ",", i ? ",\n" : "\n", marker[query->statement]);
		export_write_text(writer->out, query->labels->query_id);
		fputc(',', writer->out);
		export_write_text(writer->out, query->labels->database);
		fprintf(writer->out, ",%" PRId64 ",%" PRIu32 "]", query->value, query->labels->side);
	}
	fputs("]", writer->out);
	free(order);
	free(marker);
	free(runs);
	return fine;
}

/* Times in ms: a number of JavaScript has not room for ns. */
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

static bool write_data(struct writer *writer)
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
	fputs(",\n", writer->out);
	write_title(writer);
	/* The samples first: they make the nodes, which make the functions. */
	if (!write_samples(writer))
		return false;
	write_nodes(writer);
	bool fine = write_sets(writer) && write_functions(writer) && write_queries(writer);
	fputs("}\n", writer->out);
	return fine;
}

static bool write_page(struct writer *writer)
{
	size_t size = (size_t)(flame_graph_page_end - flame_graph_page);
	const char *marker = memmem(flame_graph_page, size, data_marker, sizeof(data_marker) - 1);

	if (!marker)
		return false;
	fwrite(flame_graph_page, 1, (size_t)(marker - flame_graph_page), writer->out);
	if (!write_data(writer))
		return false;
	marker += sizeof(data_marker) - 1;
	fwrite(marker, 1, (size_t)(flame_graph_page_end - marker), writer->out);
	return !ferror(writer->out);
}

static bool end_flamegraph(void *ended, bool complete)
{
	struct writer *writer = ended;
	bool fine = !complete || write_page(writer);

	for (size_t i = 0; i < writer->types.count; i++)
		sums_free(&writer->types.items[i].sums);
	vector_free(&writer->types);
	groups_free(&writer->statements);
	functions_free(&writer->functions);
	index_free(&writer->query_index);
	index_free(&writer->set_index);
	index_free(&writer->part_index);
	index_free(&writer->node_index);
	index_free(&writer->program_index);
	vector_free(&writer->queries);
	vector_free(&writer->sets);
	vector_free(&writer->parts);
	vector_free(&writer->labelled);
	vector_free(&writer->leaves);
	vector_free(&writer->rests);
	index_free(&writer->rest_index);
	vector_free(&writer->nodes);
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
	.end = end_flamegraph,
#else
	.missing = "built without node and npm",
#endif
};
