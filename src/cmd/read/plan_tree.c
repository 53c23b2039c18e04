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
#include "cmd/file/virtual_index.h"
#include "cmd/line/command.h"
#include "cmd/ui/terminal.h"
#include "sql_plan_nodes.h"
#include "store/file/database.h"

#define BAR 8    /* columns */
#define GAP 2    /* columns between them */
#define INDENT 3 /* columns per level */
#define DEPTH_MAX 40
#define DETAIL_MIN 20
#define DETAIL_MAX 70
#define TIMES 45 /* columns of the times after a node */
/* A scan, or an index made for the query, is marked from this share of the time on. */
#define MARKED_PERCENT 30
/* So is a look-up without an index that visits at least this many rows per run, and this many per returned
 * row. */
#define VISITED_MIN 1000
#define VISITED_TIMES 10

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

static bool is_scan(const struct node *node)
{
	return !strncmp(node->detail, "SCAN ", 5);
}

static bool is_filter(const struct node *node)
{
	return !strncmp(node->detail, "BLOOM FILTER ", 13);
}

/* min() or max() over a table without an index: SQLite calls it a search, but visits all rows. */
static bool is_search_of_all(const struct node *node)
{
	return !strncmp(node->detail, "SEARCH ", 7) && !strstr(node->detail, " USING ");
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
			around->looked += is_scan(node) ? 0 : node->looked;
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

/* Whether the rows come from a part of the statement itself, or from a source that only the host knows. */
static bool is_made(const struct tree *tree, const char *name)
{
	static const char *const makers[] = { "CO-ROUTINE ", "MATERIALIZE " };

	for (size_t i = 0; i < tree->nodes.count; i++)
		for (size_t maker = 0; maker < sizeof(makers) / sizeof(*makers); maker++) {
			const char *detail = tree->nodes.items[i].detail;
			size_t size = strlen(makers[maker]);

			if (!strncmp(detail, makers[maker], size) && !strcmp(detail + size, name))
				return true;
		}
	return strchr(name, '(') || strstr(name, "CONSTANT ROW") || strstr(name, "-ROW VALUES CLAUSE") ||
	       strstr(name, " VIRTUAL TABLE ");
}

static size_t count_whole(const struct tree *tree)
{
	size_t count = 0;

	for (size_t i = 0; i < tree->nodes.count; i++) {
		const struct node *node = &tree->nodes.items[i];

		count += (is_scan(node) && !is_made(tree, node->detail + 5)) || is_search_of_all(node);
	}
	return count;
}

/* Rows are counted per statement, so they describe a loop only if it is the only one. SQLite counts the steps
 * between rows, so the first row adds one. */
static void write_visited(FILE *to, const struct tree *tree)
{
	if (tree->visited >= 1 && count_whole(tree) == 1)
		fprintf(to, ", %.0f rows visited and %.0f returned a run", tree->visited + 1, tree->returned);
}

double plan_count_factor(int64_t loops, int64_t rows, double estimate)
{
	const double expected = fmax(1, estimate * (double)loops), found = fmax(1, (double)rows);

	if (loops < 1 || estimate < 0)
		return 0;
	return found >= expected ? found / expected : -expected / found;
}

bool plan_may_end_early(const char *detail, bool is_cut)
{
	/* min() and max() stop at the first row: SQLite calls such a loop a search without a condition. */
	return is_cut || (!strncmp(detail, "SEARCH ", 7) && !strchr(detail, '('));
}

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

/* A small number that is not whole has two digits after the point. */
static void write_number(FILE *to, const char *format, double number)
{
	fprintf(to, format, number < 10 && number != floor(number) ? 2 : 0, number);
}

static void write_counts(FILE *to, const struct tree *tree, const struct node *node)
{
	const long long loops = node->loops, rows = node->rows;
	const double factor = plan_count_factor(loops, rows, node->estimate);

	if (loops >= 0 && is_filter(node))
		fprintf(to, "%lld of %lld row%s pass", rows, loops, plural(loops));
	else if (loops >= 0)
		fprintf(to, "%lld loop%s, %lld row%s", loops, plural(loops), rows, plural(rows));
	if (loops > 1 && !is_filter(node))
		write_number(to, ", %.*f a loop", (double)rows / (double)loops);
	if (factor == 0)
		return;
	fprintf(to, ", %.*f estimated",
	        node->estimate < 10 && node->estimate != floor(node->estimate) ? 1 : 0, node->estimate);
	if (fabs(factor) >= 2)
		fprintf(to, ": %.0f times %s%s", fabs(factor), factor > 0 ? "as many" : "fewer",
		        fabs(factor) >= PLAN_FACTOR_MARKED &&
		                        (factor > 0 || !plan_may_end_early(node->detail, tree->is_cut))
		                ? " (BAD ESTIMATE)"
		                : "");
}

static void write_mark(FILE *to, const struct tree *tree, const struct node *node)
{
	const double own = tree->whole > 0 ? 100 * node->own / tree->whole : 0;
	const double looked = tree->whole > 0 ? 100 * node->looked / tree->whole : 0;

	if (strstr(node->detail, VIRTUAL_INDEX) && *node->compared) {
		fputs(node->compared, to); /* the module, if it is not SQLite's own */
		return;
	}
	if (virtual_index_write(to, node->detail))
		return;
	if (own >= MARKED_PERCENT && strstr(node->detail, "AUTOMATIC")) {
		fputs("an index for this run alone", to);
	} else if (looked >= MARKED_PERCENT && is_scan(node) && !is_made(tree, node->detail + 5)) {
		fprintf(to, "the whole %s%s%s%s", strstr(node->detail, " USING ") ? "index" : "table",
		        *node->compared ? ", compares " : "", node->compared,
		        own < MARKED_PERCENT ? ", with a look-up for each row" : "");
		write_visited(to, tree);
	} else if (is_search_of_all(node) && tree->visited >= VISITED_MIN &&
	           tree->visited >= VISITED_TIMES * tree->returned) {
		fputs("the whole table", to);
		write_visited(to, tree);
	}
}

typedef void write_function(FILE *to, const struct tree *tree, const struct node *node);

/* What the function writes, malloc'ed. NULL: no memory. */
static char *written(write_function *write, const struct tree *tree, const struct node *node)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (to)
		write(to, tree, node);
	if (!to || fclose(to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* Prints counts and mark after the line's `used` columns, or below the line if they have no room. */
static void print_mark(const struct tree *tree, const struct node *node, int used)
{
	const int room = terminal_width();
	char *counts = written(write_counts, tree, node), *mark = written(write_mark, tree, node);
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

static bool print_tree(struct tree *tree, const struct shown_type *type)
{
	bool is_time = !strcmp(type->unit, "ns");
	int width = 20;

	if (!find_children(tree) || !insert_below(tree, NULL, 0))
		return false;
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
	return true;
}

/* The file has those of Bloom filters alone. */
static void set_counts(struct node *node, const plan_counts *counts)
{
	if (!is_filter(node))
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
	while (fine && !code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		code = SQLITE_OK;
		if (!tree.nodes.count || sqlite3_column_int64(rows, COLUMN_PLAN) != plan) {
			if (tree.nodes.count) {
				print_heading(&tree, number++ ? NULL : how->title, false);
				fine = print_tree(&tree, type);
			}
			fine = fine && begin_tree(&tree, rows);
			plan = sqlite3_column_int64(rows, COLUMN_PLAN);
		}
		fine = fine && add_node(&tree, rows, how->counts);
	}
	if (fine && tree.nodes.count) {
		print_heading(&tree, number ? NULL : how->title, number == 0 && is_one);
		number++;
		fine = print_tree(&tree, type);
	}
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
