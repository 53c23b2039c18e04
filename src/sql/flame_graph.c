/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/flame_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "frames/address.h"
#include "frames/collapse.h"
#include "frames/stack_text.h"

static bool is_stack(const char *stack)
{
	struct address_reader reader = { .at = stack };
	uint64_t address;
	int next;

	while ((next = address_reader_next(&reader, &address)) > 0)
		;
	return next == 0;
}

bool flame_graph_add(struct flame_graph *graph, const char *stack, int64_t weight, bool *bad)
{
	size_t known = graph->stacks.list.count;

	*bad = false;
	if (!text_sums_add(&graph->stacks, stack, weight))
		return false;
	*bad = graph->stacks.list.count > known && !is_stack(stack);
	return !*bad;
}

static bool collapse_text(struct collapse *collapse, const struct address_space *space,
                          const struct text_sum *stack)
{
	struct address_reader reader = { .at = stack->text };
	VECTOR(uint64_t) addresses = { 0 }; /* leaf first */
	uint64_t address;
	bool fine = true;

	while (fine && address_reader_next(&reader, &address) > 0)
		fine = vector_push(&addresses, address);
	for (size_t i = addresses.count; fine && i-- > 0;) {
		char *text = address_text(space, addresses.items[i]);
		fine = text && collapse_frame(collapse, text);
		free(text);
	}
	vector_free(&addresses);
	return fine && collapse_stack(collapse, stack->sum);
}

char *flame_graph_lines(const struct flame_graph *graph, const struct address_space *space)
{
	struct collapse collapse = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool written = out;

	for (size_t i = 0; written && i < graph->stacks.list.count; i++)
		written = collapse_text(&collapse, space, &graph->stacks.list.items[i]);
	written = written && collapse_write(&collapse, out);
	collapse_free(&collapse);
	if (out && fclose(out) != 0)
		written = false;
	if (!written) {
		free(text);
		return NULL;
	}
	if (size)
		text[size - 1] = 0;
	return text;
}

void flame_graph_free(struct flame_graph *graph)
{
	text_sums_free(&graph->stacks);
}
