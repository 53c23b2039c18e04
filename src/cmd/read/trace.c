/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof trace: one request as a waterfall.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/read/span_tree.h"
#include "cmd/ui/terminal.h"
#include "sql_trace_spans.h"
#include "sql_trace_stacks.h"

#define BAR_MAX 32 /* columns */
#define BAR_MIN 10
#define TIMES 45      /* columns before the name, without the bar */
#define INDENT_MAX 40 /* levels */
#define FOLD_FROM 5   /* so many similar spans in a row become one line */

static const char *samples, *limit, *all;

static const struct command_option options[] = {
	COMMAND_FLAG("samples", &samples, "the top stacks of the samples in each span"),
	LIMIT_OPTION(&limit, "spans at most (default 1000)"),
	COMMAND_FLAG("all", &all, "a line for each span, also for many similar ones"),
	{ 0 },
};

static int bar = BAR_MAX;

/* Names are more useful than the bar. */
static void choose_bar(void)
{
	int width = terminal_width(), free = (width - TIMES) / 3;

	if (width && free < BAR_MAX)
		bar = free > BAR_MIN ? free : BAR_MIN;
}

/* --- lines ------------------------------------------------------------------------------------- */

/* Three digits and a unit, in nine columns. */
static void print_time(int64_t ns)
{
	static const struct {
		double of;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if ((double)ns >= 0.9995 * units[i].of || i == 2) {
			printf("%6.1f %-2s", (double)ns / units[i].of, units[i].unit);
			return;
		}
}

static void print_bar(const struct span_tree *tree, int64_t start, int64_t end, bool is_critical)
{
	double scale = tree->end > tree->start ? (double)bar / (double)(tree->end - tree->start) : 0;
	double first = (double)(start - tree->start) * scale, behind = (double)(end - tree->start) * scale;
	int from = first < 0         ? 0
	           : first > bar - 1 ? bar - 1
	                             : (int)first,
	    to = behind > bar        ? bar
	         : behind < from + 1 ? from + 1
	                             : (int)behind;

	printf(" |%*s", from, "");
	for (int i = from; i < to; i++)
		putchar(is_critical ? '#' : '-');
	printf("%*s| ", bar - to, "");
}

/* Prints as much of the line's own text as fits the terminal. */
static void print_text(const char *text, int used)
{
	terminal_print_cut(text, strlen(text), terminal_room(used), false);
}

static void print_stacks(const struct span *span, int indent)
{
	for (size_t i = 0; i < span->stacks.count; i++) {
		printf("%*s", TIMES + bar + indent, "");
		print_text(span->stacks.items[i], TIMES + bar + indent);
		putchar('\n');
	}
}

/* Prints `count` similar spans from this one on, which last `lasted` in total. */
static void print_span(const struct span_tree *tree, const struct span *span, size_t count, int64_t lasted,
                       int64_t end)
{
	int indent = 2 * (span->depth < INDENT_MAX ? span->depth : INDENT_MAX);
	const struct span *parent = span->parent;
	bool moves = !parent || strcmp(parent->thread, span->thread) != 0;
	char *text = NULL;

	printf("%c ", span->is_critical ? '*' : ' ');
	print_time(span->start - tree->start);
	putchar(' ');
	print_time(lasted);
	putchar(' ');
	print_time(count > 1 ? lasted : span->self);
	if (span->cpu && count == 1)
		printf(" "), print_time(span->cpu);
	else
		printf(" %9s", "");
	print_bar(tree, span->start, end, span->is_critical);
	if (count > 1 && asprintf(&text, "%*s%s x %zu", indent, "", span->name, count) < 0)
		text = NULL;
	if (count == 1 && asprintf(&text, "%*s%s%s%s%s%s%s%s", indent, "", span->name,
	                           span->notes[0] ? " (" : "", span->notes, span->notes[0] ? ")" : "",
	                           moves ? " [" : "", moves ? span->thread_name : "", moves ? "]" : "") < 0)
		text = NULL;
	print_text(text ? text : span->name, TIMES + bar);
	putchar('\n');
	free(text);
	if (count == 1)
		print_stacks(span, indent + 2);
}

/* The number of similar siblings without children in a row, from this span on. */
static size_t count_alike(const struct span *span)
{
	size_t count = 0;

	for (const struct span *at = span; at && !all; at = at->next) {
		if (at->child || at->stacks.count || at->is_critical != span->is_critical || at->notes[0] ||
		    strcmp(at->name, span->name) != 0 || strcmp(at->thread, span->thread) != 0)
			break;
		count++;
	}
	return count < FOLD_FROM ? 1 : count;
}

static void print_tree(const struct span_tree *tree)
{
	size_t most = limit ? strtoul(limit, NULL, 10) : 1000, lines = 0, shown = 0;

	printf("  %9s %9s %9s %9s\n", "start", "duration", "self", "cpu");
	for (const struct span *span = tree->roots; span && lines < most; lines++) {
		size_t count = count_alike(span);
		int64_t lasted = 0, end = span->end;
		const struct span *last = span;

		for (size_t i = 0; i < count; i++, span = span->next ? span->next : span) {
			lasted += span->end - span->start;
			end = span->end > end ? span->end : end;
			if (i + 1 == count)
				break;
		}
		print_span(tree, last, count, lasted, end);
		shown += count;
		span = span_tree_next(span);
	}
	if (shown < tree->spans.count)
		printf("  … and %zu more spans: --limit %zu shows them\n", tree->spans.count - shown,
		       tree->spans.count);
}

/* --- the trace ----------------------------------------------------------------------------------- */

static void print_head(const struct span_tree *tree, const char *id)
{
	int64_t cpu = 0;
	double square = 0;

	for (const struct span *span = tree->roots; span; span = span->next) {
		cpu += span->cpu;
		square += (double)span->cpu_error * (double)span->cpu_error;
	}
	printf("trace %s\n", id);
	printf("%.3f ms, %zu spans", (double)(tree->end - tree->start) / 1e6, tree->spans.count);
	if (cpu)
		printf(", CPU of the outermost %.1f ms (standard error %.1f)", (double)cpu / 1e6,
		       sqrt(square) / 1e6);
	printf("\n* the critical path: what the end had to wait for\n\n");
}

static const struct id_kind trace_ids = {
	FIND_IDS("SELECT DISTINCT printf('%016x%016x', trace_hi, trace_lo) FROM span_parts"),
	"trace",
	{ "traces", "" }
};

static int print_trace(sqlite3 *db, char **argv)
{
	const char *path = argv[0];
	char *id = selection_complete_id(db, path, &trace_ids, argv[1]);
	struct span_tree tree = { .roots = NULL };
	int result = COMMAND_FAILED;

	if (!id && trace_file_is_pulled(db))
		complain("%s: a file from queryprof pull has no traces: ClickHouse has their spans in the "
		         "view span_log",
		         path);
	if (!id)
		return COMMAND_FAILED;
	if (!span_tree_read(&tree, db, sql_trace_spans, id) ||
	    (samples && !span_tree_read_stacks(&tree, db, sql_trace_stacks, id))) {
		complain("%s: %s", path, sqlite3_errmsg(db));
	} else {
		span_tree_link(&tree);
		choose_bar();
		print_head(&tree, id);
		print_tree(&tree);
		result = COMMAND_FINE;
	}
	span_tree_free(&tree);
	sqlite3_free(id);
	return result;
}

const struct command command_trace = {
	.name = "trace",
	.arguments = "FILE ID [OPTION]...",
	.summary = "Shows what happened in one traced request",
	.details = "Has a line for each span, in the order of the tree: its start, its duration, its "
		   "duration without its children on the same thread, and the CPU time of its thread "
		   "meanwhile, estimated from samples of queries. The bar shows the span's place within the "
		   "whole. Spans with * are the critical path: if they were shorter, the request would end "
		   "earlier. A span of another thread names that thread. ID is the trace's id, or its "
		   "beginning: queryprof traces lists them.",
	.examples = "  queryprof trace app.trace 4bf92f3577b34da6\n"
		    "  queryprof trace app.trace 4bf92f3577b34da6 --samples\n",
	.options = options,
	.reads_file = false,
	.pages = true,
	.arguments_min = 2,
	.arguments_max = 2,
	.read = print_trace,
};
