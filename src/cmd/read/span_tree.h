/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans of one trace as a tree, and its critical path.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

struct span {
	uint64_t id, parent_id;
	char *name, *notes, *thread, *thread_name;
	int64_t start, end, self, cpu, cpu_error, samples;
	struct span *parent, *child, *next; /* the first child and the next sibling, by start */
	int depth;
	bool is_critical;
	VECTOR(char *) stacks;
};

struct span_tree {
	VECTOR(struct span) spans; /* by start */
	struct span *roots;
	int64_t start, end;
};

/* Reads the rows of sql/read/trace_spans.sql and sql/read/trace_stacks.sql. False: SQLite's error, or no
 * memory. */
bool span_tree_read(struct span_tree *tree, sqlite3 *db, const char *sql, const char *id);
bool span_tree_read_stacks(struct span_tree *tree, sqlite3 *db, const char *sql, const char *id);

/* Finds parents, children and the critical path. */
void span_tree_link(struct span_tree *tree);

/* The next span in the order of the tree: its first child, or the span after it. */
const struct span *span_tree_next(const struct span *span);

void span_tree_free(struct span_tree *tree);
