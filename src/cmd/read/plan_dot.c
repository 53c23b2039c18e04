/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/plan_dot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inside a text in quotes. */
static void print_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar((unsigned char)*text < ' ' ? ' ' : *text);
	}
}

static void print_dot_node(const struct tree *tree, const struct node *node, size_t plan, size_t number,
                           bool is_time)
{
	char *counts = plan_words_counts(tree, node), *mark = plan_words_mark(tree, node);
	const double share = tree->whole > 0 ? fmin(fmax(node->own / tree->whole, 0), 1) : 0;

	printf("\t\tp%zu_%zu [label=\"", plan, number);
	print_quoted(node->detail);
	if (tree->whole > 0)
		printf("\\nself %.1f %%, total %.1f %%", 100 * share, 100 * node->total / tree->whole);
	if (tree->whole > 0 && is_time)
		printf(", %.0f ms ±%.0f", node->total / 1e6, sqrt(node->square) / 1e6);
	for (int i = 0; i < 2; i++) {
		const char *text = i ? mark : counts;

		printf("%s", text && *text ? "\\n" : "");
		print_quoted(text ? text : "");
	}
	printf("\", fillcolor=\"0.05 %.2f 1\"];\n", share);
	free(counts);
	free(mark);
}

void plan_dot_print(const struct tree *tree, const struct shown_type *type, size_t plan)
{
	size_t above[DEPTH_MAX + 1] = { 0 };

	printf("\tsubgraph cluster_%zu {\n\t\tp%zu [label=\"%lld run%s, ", plan, plan, (long long)tree->runs,
	       tree->runs == 1 ? "" : "s");
	print_quoted(tree->seen);
	printf("\\n");
	print_quoted(tree->query + strspn(tree->query, " \t\r\n"));
	printf("\"];\n");
	for (size_t i = 0; i < tree->order.count; i++) {
		const struct node *node = &tree->nodes.items[tree->order.items[i]];

		print_dot_node(tree, node, plan, i, !strcmp(type->unit, "ns"));
		above[node->depth] = i;
		if (node->depth)
			printf("\t\tp%zu_%zu -> p%zu_%zu;\n", plan, above[node->depth - 1], plan, i);
		else
			printf("\t\tp%zu -> p%zu_%zu;\n", plan, plan, i);
	}
	printf("\t}\n");
}
