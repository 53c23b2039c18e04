/*
 * A hash table from traces, as text, to their addresses and the sum of their
 * weights. See the header.
 */
#include "sql/flame_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/collapse.h"
#include "trace/trace_text.h"
#include "base/hash_table.h"
#include "trace/address.h"

struct entry {
	struct hash key;
	uint64_t *addresses; /* leaf first */
	size_t count;
	int64_t weight;
};

struct flame_graph {
	struct hash_table traces;
};

struct flame_graph *flame_graph_create(void)
{
	struct flame_graph *graph = calloc(1, sizeof(*graph));

	if (graph)
		graph->traces = (struct hash_table)HASH_TABLE_OF(struct entry, SIZE_MAX);
	return graph;
}

static void free_addresses(void *context, void *entry)
{
	(void)context;
	free(((struct entry *)entry)->addresses);
}

void flame_graph_free(struct flame_graph *graph)
{
	if (!graph)
		return;
	hash_table_each(&graph->traces, free_addresses, NULL);
	hash_table_free(&graph->traces);
	free(graph);
}

/* malloc'ed, never NULL but without memory or with *bad. */
static uint64_t *read_addresses(const char *trace, size_t *count, bool *bad)
{
	struct trace_reader reader = { trace, false };
	uint64_t address, *addresses;
	int next;

	*count = 0;
	while ((next = trace_next(&reader, &address)) > 0)
		++*count;
	*bad = next < 0;
	addresses = *bad ? NULL : malloc((*count + 1) * sizeof(*addresses));
	if (!addresses)
		return NULL;
	reader = (struct trace_reader){ trace, false };
	for (size_t i = 0; trace_next(&reader, &address) > 0; i++)
		addresses[i] = address;
	return addresses;
}

bool flame_graph_add(struct flame_graph *graph, const char *trace, int64_t weight, bool *bad)
{
	struct hash key = hash_bytes(trace, strlen(trace));
	struct entry *entry = hash_table_find(&graph->traces, key);

	*bad = false;
	if (!entry) {
		size_t count;
		uint64_t *addresses = read_addresses(trace, &count, bad);
		if (!addresses)
			return false;
		entry = hash_table_add(&graph->traces, key);
		if (!entry) {
			free(addresses);
			return false;
		}
		entry->addresses = addresses;
		entry->count = count;
	}
	/* The weight may be anybody's number. */
	if (__builtin_add_overflow(entry->weight, weight, &entry->weight))
		entry->weight = weight > 0 ? INT64_MAX : INT64_MIN;
	return true;
}

struct collapsing {
	const struct address_space *space;
	struct collapse *collapse; /* NULL once there was no memory */
};

static bool collapse_entry(struct collapsing *collapsing, const struct entry *entry)
{
	bool fine = true;

	for (size_t i = entry->count; fine && i-- > 0;) {
		char *text = address_text(collapsing->space, entry->addresses[i]);
		fine = text && collapse_frame(collapsing->collapse, text);
		free(text);
	}
	return fine && collapse_stack(collapsing->collapse, entry->weight);
}

static void collapse_each(void *context, void *entry)
{
	struct collapsing *collapsing = context;

	if (collapsing->collapse && !collapse_entry(collapsing, entry)) {
		collapse_free(collapsing->collapse);
		collapsing->collapse = NULL;
	}
}

char *flame_graph_lines(struct flame_graph *graph, const struct address_space *space)
{
	struct collapsing collapsing = { space, collapse_create() };
	char *text = NULL;
	size_t size = 0;

	hash_table_each(&graph->traces, collapse_each, &collapsing);
	FILE *out = collapsing.collapse ? open_memstream(&text, &size) : NULL;
	bool written = out && collapse_write(collapsing.collapse, out);
	if (out && fclose(out) != 0)
		written = false;
	collapse_free(collapsing.collapse);
	if (!written) {
		free(text);
		return NULL;
	}
	if (size)
		text[size - 1] = 0;
	return text;
}
