/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/plan_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/virtual_index.h"
#include "cmd/read/plan_counts.h"

/* A scan, or an index made for the query, is marked from this share of the time on. */
#define MARKED_PERCENT 30
/* So is a look-up without an index that visits at least this many rows per run, and this many per returned
 * row. */
#define VISITED_MIN 1000
#define VISITED_TIMES 10

bool plan_is_scan(const struct node *node)
{
	return !strncmp(node->detail, "SCAN ", 5);
}

bool plan_is_filter(const struct node *node)
{
	return !strncmp(node->detail, "BLOOM FILTER ", 13);
}

/* min() or max() over a table without an index: SQLite calls it a search, but visits all rows. */
static bool is_search_of_all(const struct node *node)
{
	return !strncmp(node->detail, "SEARCH ", 7) && !strstr(node->detail, " USING ");
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

		count += (plan_is_scan(node) && !is_made(tree, node->detail + 5)) || is_search_of_all(node);
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

	if (loops >= 0 && plan_is_filter(node))
		fprintf(to, "%lld of %lld row%s pass", rows, loops, plural(loops));
	else if (loops >= 0)
		fprintf(to, "%lld loop%s, %lld row%s", loops, plural(loops), rows, plural(rows));
	if (loops > 1 && !plan_is_filter(node))
		write_number(to, ", %.*f a loop", (double)rows / (double)loops);
	if (factor == 0)
		return;
	write_number(to, ", %.*f estimated", node->estimate);
	/* SQLite counts rows before it tests conditions that use no index, and estimates those that pass. */
	if (*node->compared && !strstr(node->detail, VIRTUAL_INDEX))
		fputs(" after its conditions", to);
	else if (fabs(factor) >= 2)
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
	} else if (looked >= MARKED_PERCENT && plan_is_scan(node) && !is_made(tree, node->detail + 5)) {
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

char *plan_words_counts(const struct tree *tree, const struct node *node)
{
	return written(write_counts, tree, node);
}

char *plan_words_mark(const struct tree *tree, const struct node *node)
{
	return written(write_mark, tree, node);
}
