/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan with its times, as plan_tree.c reads it, and the words for its nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

#define DEPTH_MAX 40

struct node {
	int64_t id, parent;
	char *detail, *compared;
	double own, own_square, total, square;
	double looked;       /* its own time, and that of inner loops that are not scans */
	int64_t loops, rows; /* loops -1: not known */
	double estimate;     /* rows of each loop; -1: not known */
	int depth;
	bool is_last[DEPTH_MAX]; /* among its siblings; the same for each ancestor */
};

struct child {
	int64_t parent;
	size_t node;
};

struct tree {
	VECTOR(struct node) nodes;
	VECTOR(struct child) children; /* by parent, then in the order of the nodes */
	VECTOR(size_t) order;          /* as printed */
	double whole;
	double visited, returned; /* steps in whole tables, and rows, per run; -1: not known */
	int64_t runs;
	char *query, *seen; /* the first run's text and time */
	bool is_cut;        /* its program has a limit of rows */
};

/* The node reads rows of a table, of an index or of another node from the first to the last one. */
bool plan_is_scan(const struct node *node);
bool plan_is_filter(const struct node *node); /* a Bloom filter */

/* The words of a node's loops, rows and estimate, and of its note. malloc'ed; NULL: no memory. */
char *plan_words_counts(const struct tree *tree, const struct node *node);
char *plan_words_mark(const struct tree *tree, const struct node *node);
