/*
 * A flame graph to look at in a browser: one HTML file with all that it needs. The
 * page (page/) is bundled with its libraries when queryprof is built; here only the
 * data are put into it, as tables in JSON that page/flame_graph.js explains.
 *
 * A build without node and npm has no page, and says so.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/functions.h"
#include "export/groups.h"
#include "export/export.h"
#include "export/sums.h"
#include "export/text.h"

#ifdef QUERYPROF_FLAME_GRAPH_PAGE

/* The page, see flamegraph_page.S. */
extern const char flame_graph_page[], flame_graph_page_end[];

static const char data_place[] = "@DATA@";

struct node_entry {
	struct hash key;
	int32_t number;
};

struct node {
	int32_t parent; /* -1: the root */
	uint32_t function;
};

struct query {
	const struct report_labels *labels;
	uint32_t statement;
	int64_t ns;
};

struct query_entry {
	struct hash key;
	uint32_t number;
};

struct writer {
	FILE *out;
	const struct report_info *info;
	struct sums sums;
	struct groups statements;
	struct hash_table query_table;
	struct query *queries;
	uint32_t query_count, query_capacity;
	/* While it writes. */
	struct functions functions;
	struct hash_table node_table;
	struct node *nodes;
	int32_t node_count, node_capacity;
};

static void *begin_flamegraph(FILE *out, const struct report_info *info)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->out = out;
	writer->info = info;
	writer->query_table = (struct hash_table)HASH_TABLE_OF(struct query_entry, SIZE_MAX);
	writer->node_table = (struct hash_table)HASH_TABLE_OF(struct node_entry, SIZE_MAX);
	return writer;
}

/* --- queries --------------------------------------------------------------------- */

/* By id and statement: an id of the user's own may be that of several. */
static struct hash query_key(const struct report_labels *labels)
{
	uint64_t words[] = { (uintptr_t)labels->query_id, (uint64_t)labels->statement_hash };
	return hash_words(words, 2);
}

static struct query *find_query(struct writer *writer, const struct report_labels *labels)
{
	struct hash key = query_key(labels);
	struct query_entry *entry = hash_table_find(&writer->query_table, key);

	if (entry)
		return &writer->queries[entry->number];
	if (writer->query_count == writer->query_capacity) {
		uint32_t capacity = writer->query_capacity ? writer->query_capacity * 2 : 64;
		struct query *grown = reallocarray(writer->queries, capacity, sizeof(*grown));
		if (!grown)
			return NULL;
		writer->queries = grown;
		writer->query_capacity = capacity;
	}
	entry = hash_table_add(&writer->query_table, key);
	if (!entry)
		return NULL;
	entry->number = writer->query_count;
	struct query *query = &writer->queries[writer->query_count++];
	*query = (struct query){ .labels = labels };
	return query;
}

static bool add_flamegraph(void *to, const struct report_sample *sample)
{
	struct writer *writer = to;
	struct query *query = find_query(writer, sample->labels);
	uint32_t statement = groups_add(&writer->statements, sample);

	if (!query || statement == GROUPS_NO_MEMORY)
		return false;
	query->statement = statement;
	query->ns += sample->ns;
	/* All threads of a query are one here. */
	struct report_sample bare = *sample;
	bare.labels = query->labels;
	return sums_add(&writer->sums, &bare);
}

/* --- the tree -------------------------------------------------------------------- */

#define NODE_NO_MEMORY (-2)

static int32_t find_node(struct writer *writer, int32_t parent, uint32_t function)
{
	uint64_t words[] = { (uint64_t)(uint32_t)parent, function };
	struct hash key = hash_words(words, 2);
	struct node_entry *entry = hash_table_find(&writer->node_table, key);

	if (entry)
		return entry->number;
	if (writer->node_count == writer->node_capacity) {
		int32_t capacity = writer->node_capacity ? writer->node_capacity * 2 : 256;
		struct node *grown = reallocarray(writer->nodes, (size_t)capacity, sizeof(*grown));
		if (!grown)
			return NODE_NO_MEMORY;
		writer->nodes = grown;
		writer->node_capacity = capacity;
	}
	entry = hash_table_add(&writer->node_table, key);
	if (!entry)
		return NODE_NO_MEMORY;
	entry->number = writer->node_count;
	writer->nodes[writer->node_count] = (struct node){ parent, function };
	return writer->node_count++;
}

/* The node of the stack's leaf. */
static int32_t find_leaf(struct writer *writer, const struct report_stack *stack)
{
	int32_t node = -1;

	for (size_t i = stack->count; i-- > 0;)
		for (size_t j = stack->frames[i]->line_count; j-- > 0;) {
			uint32_t function = functions_add(&writer->functions, stack->frames[i], j);
			if (function != FUNCTIONS_NO_MEMORY)
				node = find_node(writer, node, function);
			if (function == FUNCTIONS_NO_MEMORY || node == NODE_NO_MEMORY)
				return NODE_NO_MEMORY;
		}
	return node;
}

/* --- the data -------------------------------------------------------------------- */

static bool write_samples(struct writer *writer)
{
	fputs("\"samples\":[", writer->out);
	for (uint32_t i = 0; i < writer->sums.count; i++) {
		const struct sum *sum = &writer->sums.list[i];
		int32_t node = find_leaf(writer, sum->stack);
		const struct query_entry *query =
			hash_table_find(&writer->query_table, query_key(sum->labels));
		if (node == NODE_NO_MEMORY || !query)
			return false;
		fprintf(writer->out, "%s%" PRId32 ",%" PRIu32 ",%" PRId64 ",%" PRId64, i ? ",\n" : "\n", node,
		        query->number, sum->samples, sum->ns);
	}
	fputs("],\n", writer->out);
	return true;
}

static void write_nodes(const struct writer *writer)
{
	fputs("\"nodes\":[", writer->out);
	for (int32_t i = 0; i < writer->node_count; i++)
		fprintf(writer->out, "%s%" PRId32 ",%" PRIu32, i ? "," : "", writer->nodes[i].parent,
		        writer->nodes[i].function);
	fputs("],\n", writer->out);
}

/* Two modules of one path, as an old and a new version are, are two here. */
static bool write_functions(const struct writer *writer)
{
	struct hash_table numbers = HASH_TABLE_OF(struct query_entry, SIZE_MAX);
	const struct report_module **modules = calloc(writer->functions.count + 1u, sizeof(*modules));
	bool fine = modules;

	fputs("\"functions\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->functions.count; i++) {
		const struct report_function *function = &writer->functions.list[i];
		int64_t number = -1;
		if (function->module) {
			uint64_t word = (uintptr_t)function->module;
			struct query_entry *entry = hash_table_find(&numbers, hash_words(&word, 1));
			if (!entry && (entry = hash_table_add(&numbers, hash_words(&word, 1))) != NULL) {
				entry->number = (uint32_t)numbers.count - 1;
				modules[entry->number] = function->module;
			}
			fine = entry;
			number = entry ? (int64_t)entry->number : -1;
		}
		fputs(i ? ",\n[" : "\n[", writer->out);
		text_write_json(writer->out, function->name);
		fprintf(writer->out, ",%" PRId64 ",", number);
		text_write_json(writer->out, function->file);
		fputc(']', writer->out);
	}
	fputs("],\n\"modules\":[", writer->out);
	for (size_t i = 0; fine && i < numbers.count; i++) {
		fputs(i ? "," : "", writer->out);
		text_write_json(writer->out, modules[i]->name);
	}
	fputs("],\n", writer->out);
	free(modules);
	hash_table_free(&numbers);
	return fine;
}

/* Statements, the one with the most time first, and the queries with their numbers. */
static bool write_queries(const struct writer *writer)
{
	uint32_t *order = groups_order(&writer->statements);
	uint32_t *place = calloc(writer->statements.count + 1u, sizeof(*place));
	bool fine = order && place;

	fputs("\"statements\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->statements.count; i++) {
		place[order[i]] = i;
		fputs(i ? ",\n" : "\n", writer->out);
		text_write_json(writer->out, writer->statements.list[order[i]].name);
	}
	fputs("],\n\"queries\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->query_count; i++) {
		const struct query *query = &writer->queries[i];
		fprintf(writer->out, "%s[%" PRIu32 ",", i ? ",\n" : "\n", place[query->statement]);
		text_write_json(writer->out, query->labels->query_id);
		fputc(',', writer->out);
		text_write_json(writer->out, query->labels->database);
		fprintf(writer->out, ",%" PRId64 "]", query->ns);
	}
	fputs("]", writer->out);
	free(order);
	free(place);
	return fine;
}

static bool write_data(struct writer *writer)
{
	fputs("{\"title\":", writer->out);
	text_write_json(writer->out, writer->info->title);
	fputs(",\"trace_type\":", writer->out);
	text_write_json(writer->out, writer->info->trace_type);
	fputs(",\n", writer->out);
	/* The samples first: they make the nodes, which make the functions. */
	if (!write_samples(writer))
		return false;
	write_nodes(writer);
	bool fine = write_functions(writer) && write_queries(writer);
	fputs("}\n", writer->out);
	return fine;
}

static bool write_page(struct writer *writer)
{
	size_t size = (size_t)(flame_graph_page_end - flame_graph_page);
	const char *place = memmem(flame_graph_page, size, data_place, sizeof(data_place) - 1);

	if (!place)
		return false;
	fwrite(flame_graph_page, 1, (size_t)(place - flame_graph_page), writer->out);
	if (!write_data(writer))
		return false;
	place += sizeof(data_place) - 1;
	fwrite(place, 1, (size_t)(flame_graph_page_end - place), writer->out);
	return !ferror(writer->out);
}

static bool end_flamegraph(void *ended, bool complete)
{
	struct writer *writer = ended;
	bool fine = !complete || write_page(writer);

	sums_free(&writer->sums);
	groups_free(&writer->statements);
	functions_free(&writer->functions);
	hash_table_free(&writer->query_table);
	hash_table_free(&writer->node_table);
	free(writer->queries);
	free(writer->nodes);
	free(writer);
	return fine;
}
#endif

const struct report_format report_flamegraph = {
	.name = "flamegraph",
	.summary = "an HTML page, all in one file, for the browser; time",
#ifdef QUERYPROF_FLAME_GRAPH_PAGE
	.begin = begin_flamegraph,
	.add = add_flamegraph,
	.end = end_flamegraph,
#else
	.missing = "built without node and npm",
#endif
};
