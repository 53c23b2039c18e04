/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/plan_tree.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"
#include "cmd/line/command.h"
#include "cmd/read/plan_dot.h"
#include "cmd/read/plan_words.h"
#include "cmd/ui/terminal.h"
#include "sql_plan_nodes.h"
#include "store/file/database.h"

#define BAR 8    /* columns */
#define GAP 2    /* columns between them */
#define INDENT 3 /* columns per level */
#define DETAIL_MIN 20
#define DETAIL_MAX 70
#define TIMES 45 /* columns of the times after a node */

enum {
	COLUMN_PLAN,
	COLUMN_RUNS,
	COLUMN_QUERY,
	COLUMN_NODE,
	COLUMN_PARENT,
	COLUMN_DETAIL,
	COLUMN_NS,
	COLUMN_SQUARE,
	COLUMN_SEEN,
	COLUMN_COMPARED,
	COLUMN_LOOPS,
	COLUMN_ROWS,
	COLUMN_VISITED,
	COLUMN_RETURNED,
	COLUMN_STATEMENT,
	COLUMN_ESTIMATE,
	COLUMN_IS_CUT
};

static void tree_free(struct tree *tree)
{
	for (size_t i = 0; i < tree->nodes.count; i++) {
		free(tree->nodes.items[i].detail);
		free(tree->nodes.items[i].compared);
	}
	vector_free(&tree->nodes);
	vector_free(&tree->children);
	vector_free(&tree->order);
	free(tree->query);
	free(tree->seen);
	*tree = (struct tree){ .whole = 0 };
}

COMPARE_BY_TWO(compare_children, struct child, parent, node)

/* Time outside the nodes of the plan appears below the statement. False: no memory. */
static bool find_children(struct tree *tree)
{
	bool fine = true;

	for (size_t i = 0; fine && i < tree->nodes.count; i++) {
		const struct node *node = &tree->nodes.items[i];

		if (node->id > 0 || node->own > 0)
			fine = vector_push(&tree->children,
			                   (struct child){ node->id > 0 ? node->parent : 0, i });
	}
	if (tree->children.count)
		qsort(tree->children.items, tree->children.count, sizeof(tree->children.items[0]),
		      compare_children);
	return fine;
}

/* Adds up the nodes below one, and puts them in order. False: no memory. */
static bool insert_below(struct tree *tree, struct node *around, int depth)
{
	const int64_t id = around ? around->id : 0;
	const struct child *children = tree->children.items;
	size_t end = SEARCH_COUNT(tree->children.count, j, children[j].parent <= id);

	for (size_t i = SEARCH_COUNT(end, j, children[j].parent < id); i < end; i++) {
		struct node *node = &tree->nodes.items[children[i].node];

		node->depth = depth;
		if (around)
			memcpy(node->is_last, around->is_last, sizeof(node->is_last));
		node->is_last[depth] = i + 1 == end;
		node->total = node->looked = node->own;
		node->square = node->own_square;
		if (!vector_push(&tree->order, children[i].node))
			return false;
		if (node->id > 0 && depth + 1 < DEPTH_MAX && !insert_below(tree, node, depth + 1))
			return false;
		if (around) {
			around->total += node->total;
			around->square += node->square;
			around->looked += plan_is_scan(node) ? 0 : node->looked;
		}
	}
	return true;
}

static void print_branches(const struct node *node)
{
	for (int i = 0; i < node->depth; i++)
		fputs(node->is_last[i] ? "   " : "│  ", stdout);
	fputs(node->is_last[node->depth] ? "└─ " : "├─ ", stdout);
}

/* In a damaged file, a share may have any value. */
static void print_bar(double share)
{
	int eighths = (int)(fmin(fmax(share, 0), 1) * BAR * 8 + 0.5);
	static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int printed = eighths / 8 + (eighths % 8 != 0);

	for (int i = 0; i < eighths / 8; i++)
		fputs("█", stdout);
	fputs(parts[eighths % 8], stdout);
	printf("%*s", BAR - printed, "");
}

/* Prints counts and mark after the line's `used` columns, or below the line if they have no room. */
static void print_mark(const struct tree *tree, const struct node *node, int used)
{
	const int room = terminal_width();
	char *counts = plan_words_counts(tree, node), *mark = plan_words_mark(tree, node);
	char *text =
		counts && mark ? text_format("%s%s%s", counts, *counts && *mark ? "; " : "", mark) : NULL;
	const size_t size = text ? strlen(text) : 0;

	if (size) {
		const bool is_below = room && used + GAP + terminal_measure(text, size) > room;
		const int indent = is_below ? INDENT * (node->depth + 1) + GAP : GAP;

		if (is_below)
			putchar('\n');
		terminal_print_padding(indent);
		terminal_print_cut(text, size, is_below ? room - indent : INT_MAX, false);
	}
	free(counts);
	free(mark);
	free(text);
}

static void print_node(const struct tree *tree, const struct node *node, int width, bool is_time)
{
	double whole = tree->whole;
	int indent = INDENT * (node->depth + 1), used = width;
	double share = whole > 0 ? node->own / whole : 0;

	print_branches(node);
	const int printed = terminal_print_cut(node->detail, strlen(node->detail), width - indent, true);
	if (whole <= 0) {
		print_mark(tree, node, indent + printed);
		printf("\n");
		return;
	}
	terminal_print_padding(width - indent - printed + GAP);
	print_bar(share);
	used += GAP + BAR +
	        printf(" %5.1f %%  %5.1f %%", 100 * share, whole > 0 ? 100 * node->total / whole : 0);
	if (is_time)
		used += printf(" %8.0f ms ±%.0f", node->total / 1e6, sqrt(node->square) / 1e6) - 1;
	print_mark(tree, node, used);
	printf("\n");
}

static void print_tree(const struct tree *tree, const struct shown_type *type)
{
	bool is_time = !strcmp(type->unit, "ns");
	int width = 20;

	for (size_t i = 0; i < tree->order.count; i++) {
		const struct node *node = &tree->nodes.items[tree->order.items[i]];
		int wanted =
			INDENT * (node->depth + 1) + terminal_measure(node->detail, strlen(node->detail));

		width = wanted > width ? wanted : width;
	}
	int most = terminal_width() ? terminal_width() - TIMES : DETAIL_MAX;

	most = most > DETAIL_MAX ? DETAIL_MAX : most < DETAIL_MIN ? DETAIL_MIN : most;
	width = width > most ? most : width;
	if (tree->whole > 0)
		printf("%-*s  %*s    self     total\n", width, "QUERY PLAN", BAR, "");
	else
		printf("QUERY PLAN (no run with it had a sample)\n");
	for (size_t i = 0; i < tree->order.count; i++)
		print_node(tree, &tree->nodes.items[tree->order.items[i]], width, is_time);
}

/* The file has those of Bloom filters alone. */
static void set_counts(struct node *node, const plan_counts *counts)
{
	if (!plan_is_filter(node))
		node->loops = -1;
	for (size_t i = 0; i < counts->count; i++)
		if (counts->items[i].node == node->id) {
			node->loops = counts->items[i].loops;
			node->rows = counts->items[i].rows;
			node->estimate = counts->items[i].estimate;
		}
}

static double number_or_unknown(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_NULL ? -1 : sqlite3_column_double(row, column);
}

static bool add_node(struct tree *tree, sqlite3_stmt *row, const plan_counts *counts)
{
	struct node *node = vector_add(&tree->nodes);
	const char *detail = (const char *)sqlite3_column_text(row, COLUMN_DETAIL);
	const char *compared = (const char *)sqlite3_column_text(row, COLUMN_COMPARED);

	if (!node || !(node->detail = strdup(detail ? detail : "")) ||
	    !(node->compared = strdup(compared ? compared : "")))
		return false;
	node->id = sqlite3_column_int64(row, COLUMN_NODE);
	node->parent = sqlite3_column_int64(row, COLUMN_PARENT);
	node->own = sqlite3_column_double(row, COLUMN_NS);
	node->own_square = sqlite3_column_double(row, COLUMN_SQUARE);
	node->loops = sqlite3_column_type(row, COLUMN_LOOPS) == SQLITE_NULL
	                      ? -1
	                      : sqlite3_column_int64(row, COLUMN_LOOPS);
	node->rows = sqlite3_column_int64(row, COLUMN_ROWS);
	node->estimate = number_or_unknown(row, COLUMN_ESTIMATE);
	if (counts)
		set_counts(node, counts);
	tree->visited = number_or_unknown(row, COLUMN_VISITED);
	tree->returned = sqlite3_column_double(row, COLUMN_RETURNED);
	tree->whole += node->own;
	return true;
}

static bool begin_tree(struct tree *tree, sqlite3_stmt *row)
{
	const char *query = (const char *)sqlite3_column_text(row, COLUMN_QUERY);
	const char *seen = (const char *)sqlite3_column_text(row, COLUMN_SEEN);

	tree_free(tree);
	tree->runs = sqlite3_column_int64(row, COLUMN_RUNS);
	tree->is_cut = sqlite3_column_int(row, COLUMN_IS_CUT) != 0;
	tree->query = strdup(query ? query : "");
	tree->seen = strdup(seen ? seen : "");
	return tree->query && tree->seen;
}

/* is_only: there is no other plan, and no other selected statement. */
static void print_heading(const struct tree *tree, const char *title, bool is_only)
{
	printf("\n");
	if (title)
		printf("%s\n", title);
	if (tree->runs == 1 && is_only)
		return;
	const char *query = tree->query + strspn(tree->query, " \t\r\n");

	const int used =
		printf("%lld run%s, %s: ", (long long)tree->runs, tree->runs == 1 ? "" : "s", tree->seen);

	terminal_print_cut(query, strlen(query), terminal_room(used), false);
	putchar('\n');
}

static bool print_plan(struct tree *tree, const struct shown_type *type, const struct plan_print *how,
                       size_t number, bool is_only)
{
	if (!find_children(tree) || !insert_below(tree, NULL, 0))
		return false;
	if (how->is_dot) {
		plan_dot_print(tree, type, number);
	} else {
		print_heading(tree, number == 1 ? how->title : NULL, is_only);
		print_tree(tree, type);
	}
	return true;
}

int plan_tree_statements(sqlite3 *db)
{
	sqlite3_stmt *count = NULL;
	int statements = 0;

	if (sqlite3_prepare_v2(db,
	                       "SELECT count(*) FROM (SELECT hash FROM temp.program_sums"
	                       " JOIN programs ON programs.id = program"
	                       " UNION SELECT hash FROM temp.selected_periods)",
	                       -1, &count, NULL) == SQLITE_OK &&
	    sqlite3_step(count) == SQLITE_ROW)
		statements = sqlite3_column_int(count, 0);
	sqlite3_finalize(count);
	return statements;
}

int plan_tree_print(sqlite3 *db, const struct shown_type *type, const struct plan_print *how, size_t *printed)
{
	const struct sql_parameter parameters[] = { { ":trace_type", type->name },
		                                    { ":limit", how->limit },
		                                    { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	struct tree tree = { .whole = 0 };
	int64_t plan = 0;
	size_t number = 0;
	bool fine = true;
	int code = sqlite3_prepare_v2(db, sql_plan_nodes, -1, &rows, NULL);
	const bool is_one = database_number(db, "SELECT count(*) FROM temp.selected_statements", 0) == 1;

	if (!code)
		run_sql_bind(rows, parameters);
	if (how->is_dot)
		printf("digraph plans {\n\tnode [shape=box, style=filled, fillcolor=white, "
		       "fontname=\"monospace\"];\n");
	while (fine && !code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		code = SQLITE_OK;
		if (!tree.nodes.count || sqlite3_column_int64(rows, COLUMN_PLAN) != plan) {
			if (tree.nodes.count)
				fine = print_plan(&tree, type, how, ++number, false);
			fine = fine && begin_tree(&tree, rows);
			plan = sqlite3_column_int64(rows, COLUMN_PLAN);
		}
		fine = fine && add_node(&tree, rows, how->counts);
	}
	if (fine && tree.nodes.count) {
		number++;
		fine = print_plan(&tree, type, how, number, number == 1 && is_one);
	}
	if (how->is_dot)
		printf("}\n");
	tree_free(&tree);
	sqlite3_finalize(rows);
	if (printed)
		*printed = number;
	if (!fine)
		return complain("out of memory");
	return code == SQLITE_DONE ? COMMAND_FINE
	                           : complain("the plans cannot be read: %s", sqlite3_errmsg(db));
}

void plan_tree_print_others(sqlite3 *db, const char *like)
{
	static const char sql[] =
		"WITH shown AS (SELECT hash, plan_hash FROM temp.selected_periods"
		" UNION SELECT hash, plan_hash FROM temp.program_sums AS r"
		" JOIN programs ON programs.id = r.program)"
		" SELECT printf('%016x', s.hash), count(DISTINCT plan_hash) FROM temp.selected_statements AS "
		"s"
		" JOIN statements AS x ON x.normalized_query_hash = s.hash JOIN programs AS g ON g.statement "
		"= x.id"
		" WHERE (s.hash, g.plan_hash) NOT IN (SELECT * FROM shown) GROUP BY 1 ORDER BY s.wall DESC";
	sqlite3_stmt *row = NULL;

	if (like && sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK)
		for (const char *before = "\n"; sqlite3_step(row) == SQLITE_ROW; before = "") {
			const int count = sqlite3_column_int(row, 1);

			printf("%s%d more plan%s, of runs with other literals or values: --statement %s\n",
			       before, count, count == 1 ? "" : "s",
			       (const char *)sqlite3_column_text(row, 0));
		}
	sqlite3_finalize(row);
}
