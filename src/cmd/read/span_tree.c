/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A damaged file may have any parents. A span that is its own ancestor becomes a root.
 */
#include "cmd/read/span_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"

/* --- reading ------------------------------------------------------------------------------------- */

static uint64_t id_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return text ? strtoull(text, NULL, 16) : 0;
}

static char *text_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return strdup(text ? text : "");
}

static bool add_span(struct span_tree *tree, sqlite3_stmt *row)
{
	struct span span = {
		.id = id_of(row, 0),
		.parent_id = id_of(row, 1),
		.name = text_of(row, 2),
		.start = sqlite3_column_int64(row, 3),
		.self = sqlite3_column_int64(row, 5),
		.cpu = sqlite3_column_int64(row, 6),
		.cpu_error = sqlite3_column_int64(row, 7),
		.samples = sqlite3_column_int64(row, 8),
		.notes = text_of(row, 9),
		.thread = text_of(row, 10),
		.thread_name = text_of(row, 11),
	};

	span.end = span.start + sqlite3_column_int64(row, 4);
	if (!vector_push(&tree->spans, span))
		return false;
	return span.name && span.notes && span.thread && span.thread_name;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const char *id)
{
	sqlite3_stmt *rows = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) == SQLITE_OK)
		sqlite3_bind_text(rows, sqlite3_bind_parameter_index(rows, ":trace_id"), id, -1,
		                  SQLITE_STATIC);
	return rows;
}

bool span_tree_read(struct span_tree *tree, sqlite3 *db, const char *sql, const char *id)
{
	sqlite3_stmt *rows = prepare(db, sql, id);
	bool is_fine = rows != NULL;

	while (is_fine && sqlite3_step(rows) == SQLITE_ROW)
		is_fine = add_span(tree, rows);
	return sqlite3_finalize(rows) == SQLITE_OK && is_fine;
}

/* --- by id ----------------------------------------------------------------------------------------- */

struct entry {
	struct hash key;
	struct span *span;
};

static struct hash key_of(uint64_t id)
{
	return hash_words(&id, 1);
}

static struct hash_table index_spans(struct span_tree *tree)
{
	struct hash_table index = HASH_TABLE_OF(struct entry, SIZE_MAX);

	for (size_t i = 0; i < tree->spans.count; i++) {
		struct hash key = key_of(tree->spans.items[i].id);
		struct entry *entry = hash_table_find(&index, key);

		if (!entry && (entry = hash_table_add(&index, key)))
			entry->span = &tree->spans.items[i];
	}
	return index;
}

static struct span *find(const struct hash_table *index, uint64_t id)
{
	const struct entry *entry = id ? hash_table_find(index, key_of(id)) : NULL;

	return entry ? entry->span : NULL;
}

bool span_tree_read_stacks(struct span_tree *tree, sqlite3 *db, const char *sql, const char *id)
{
	struct hash_table index = index_spans(tree);
	sqlite3_stmt *rows = prepare(db, sql, id);
	bool is_fine = rows != NULL;

	while (is_fine && sqlite3_step(rows) == SQLITE_ROW) {
		struct span *span = find(&index, id_of(rows, 0));
		char *share = text_of(rows, 1), *stack = text_of(rows, 2), *line = NULL;

		is_fine = share && stack && asprintf(&line, "%s  %s", share, stack) >= 0 &&
		          (!span || vector_push(&span->stacks, line));
		if (!span || !is_fine)
			free(line);
		free(share);
		free(stack);
	}
	hash_table_free(&index);
	return sqlite3_finalize(rows) == SQLITE_OK && is_fine;
}

/* --- the tree ------------------------------------------------------------------------------------------ */

/* Whether the span is `of` or one of its ancestors. */
static bool is_ancestor(const struct span *span, const struct span *of)
{
	while (of && of != span)
		of = of->parent;
	return of != NULL;
}

/* Except in damaged files, a parent begins before its children, so it cannot be its own ancestor. The others
 * are checked after all of these are known. */
static void find_parents(struct span_tree *tree)
{
	struct hash_table index = index_spans(tree);

	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < tree->spans.count; i++) {
			struct span *span = &tree->spans.items[i], *parent = find(&index, span->parent_id);

			if (parent &&
			    (turn == 0 ? parent < span : parent > span && !is_ancestor(span, parent)))
				span->parent = parent;
		}
	hash_table_free(&index);
}

/* Backwards, so that each list begins with the child that began first. */
static void find_children(struct span_tree *tree)
{
	for (size_t i = tree->spans.count; i-- > 0;) {
		struct span *span = &tree->spans.items[i];
		struct span **first = span->parent ? &span->parent->child : &tree->roots;

		span->next = *first;
		*first = span;
	}
}

const struct span *span_tree_next(const struct span *span)
{
	if (span->child)
		return span->child;
	while (span && !span->next)
		span = span->parent;
	return span ? span->next : NULL;
}

static void set_depths(struct span_tree *tree)
{
	for (struct span *span = tree->roots; span; span = (struct span *)span_tree_next(span))
		span->depth = span->parent ? span->parent->depth + 1 : 0;
}

static int compare_ends(const void *left, const void *right)
{
	const struct span *a = *(struct span *const *)left, *b = *(struct span *const *)right;

	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a < b ? -1 : 1;
}

/* Marks the sibling that ended last by `until`, then the sibling that ended last before that one began, and
 * so on, from `first`. The time between them is the parent's own. The parent does not wait for a child that
 * outlasts it. */
static void mark(struct span *first, int64_t until)
{
	VECTOR(struct span *) siblings = { 0 };

	for (struct span *at = first; at; at = at->next)
		if (!vector_push(&siblings, at))
			break;
	if (siblings.count)
		qsort(siblings.items, siblings.count, sizeof(siblings.items[0]), compare_ends);
	for (size_t i = 0; i < siblings.count; i++) {
		if (siblings.items[i]->end > until)
			continue;
		siblings.items[i]->is_critical = true;
		until = siblings.items[i]->start;
	}
	vector_free(&siblings);
}

static void find_critical_path(struct span_tree *tree)
{
	mark(tree->roots, tree->end);
	for (struct span *span = tree->roots; span; span = (struct span *)span_tree_next(span))
		if (span->is_critical)
			mark(span->child, span->end);
}

void span_tree_link(struct span_tree *tree)
{
	for (size_t i = 0; i < tree->spans.count; i++) {
		const struct span *span = &tree->spans.items[i];

		tree->start = !i || span->start < tree->start ? span->start : tree->start;
		tree->end = !i || span->end > tree->end ? span->end : tree->end;
	}
	find_parents(tree);
	find_children(tree);
	set_depths(tree);
	find_critical_path(tree);
}

void span_tree_free(struct span_tree *tree)
{
	for (size_t i = 0; i < tree->spans.count; i++) {
		struct span *span = &tree->spans.items[i];

		free(span->name);
		free(span->notes);
		free(span->thread);
		free(span->thread_name);
		for (size_t j = 0; j < span->stacks.count; j++)
			free(span->stacks.items[j]);
		vector_free(&span->stacks);
	}
	vector_free(&tree->spans);
}
