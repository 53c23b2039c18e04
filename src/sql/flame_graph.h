/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregate behind flameGraph(): stacks with weights go in, collapsed stacks
 * come out. A stack's names are looked up once, however often it came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text_sums.h"

struct address_space;

/* Start with a zeroed struct. */
struct flame_graph {
	struct text_sums stacks;
};

/* False: with *bad `stack` is no JSON array of addresses, without there is no
 * memory. Either ends the aggregate. */
bool flame_graph_add(struct flame_graph *graph, const char *stack, int64_t weight, bool *bad);

/* The lines, with the names that the addresses have in `space`, without an end of the last
 * one; malloc'ed, NULL: no memory. */
char *flame_graph_lines(const struct flame_graph *graph, const struct address_space *space);

void flame_graph_free(struct flame_graph *graph);
