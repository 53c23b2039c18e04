/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof findings: the greatest costs, and how to reduce them.
 */
#include <limits.h>
#include <string.h>

#include "cmd/file/words.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/line/command.h"
#include "cmd/read/finding_list.h"
#include "cmd/ui/terminal.h"

static const char *limit, *format_name;

static const struct command_option options[] = {
	LIMIT_OPTION(&limit, "findings at most (default 10)"),
	OUTPUT_TEXT_FORMAT_OPTION(&format_name),
	{ 0 },
};

#define SELECT_FINDINGS FINDING_LIST " LIMIT coalesce(CAST(:limit AS INTEGER), 10)"

enum column {
	FINDING,
	SHARE,
	SAVED,
	ERROR_MS,
	TITLE,
	EVIDENCE,
	CURE,
	SURE,
	SEE,
	STATEMENT,
	CALLER,
	FUNCTION,
	QUERY
};

#define ID 11 /* "[01234567] " */

/* Frees the text, which begins at the column `indent`. */
static void print_line(int indent, char *text)
{
	terminal_print_words(text ? text : "", indent, indent);
	printf("\n");
	sqlite3_free(text);
}

/* Omits the share if the finding is not about time, or about more time than SQLite took in total. */
static void print_title(sqlite3_stmt *row, int number, int indent)
{
	char share[16] = "", *title;

	if (sqlite3_column_type(row, SHARE) != SQLITE_NULL)
		snprintf(share, sizeof(share), "%.0f %%: ", sqlite3_column_double(row, SHARE));
	title = sqlite3_mprintf("%s%s (%s)", share, run_sql_text(row, TITLE), run_sql_text(row, FINDING));
	printf("%*d. ", indent - 2, number);
	print_line(indent, title);
}

static void print_finding(sqlite3_stmt *row, int number)
{
	static const char *const labels[] = { "evidence: ", "cure: ", "sure: ", "see: " };
	const int indent = number < 10 ? 3 : 4;
	const char *query = run_sql_text(row, QUERY);
	char *text;

	print_title(row, number, indent);
	printf("%*s[%.8s] ", indent, "", run_sql_text(row, STATEMENT));
	terminal_print_cut(query, strlen(query), terminal_room(indent + ID), false);
	printf("\n");
	if (*run_sql_text(row, CALLER)) {
		const char *function = run_sql_text(row, FUNCTION);

		text = sqlite3_mprintf("from %s%s%s%s", words_path_here(run_sql_text(row, CALLER)),
		                       *function ? " (" : "", function, *function ? ")" : "");
		terminal_print_padding(indent);
		print_line(indent, text);
	}
	for (enum column line = EVIDENCE; line <= SEE; line++) {
		const bool has_error = line == EVIDENCE && sqlite3_column_type(row, ERROR_MS) != SQLITE_NULL;

		text = sqlite3_mprintf(has_error ? "%s%s; the error of this time is %.0f ms" : "%s%s",
		                       labels[line - EVIDENCE], run_sql_text(row, line),
		                       sqlite3_column_double(row, ERROR_MS));
		terminal_print_padding(indent);
		print_line(indent, text);
	}
}

static int print_findings(sqlite3 *db)
{
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	char *inside = finding_list_inside(db);
	int code = sqlite3_prepare_v2(db, SELECT_FINDINGS, -1, &rows, NULL), number = 0;

	if (inside) {
		print_line(0, inside);
		printf("\n");
	}

	run_sql_bind(rows, parameters);
	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		printf(number ? "\n" : "");
		print_finding(rows, ++number);
		code = SQLITE_OK;
	}
	if (code != SQLITE_DONE)
		complain("findings: %s", sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	if (!number && code == SQLITE_DONE)
		printf("nothing found that could save 1 %% of the time in SQLite; queryprof report shows "
		       "where it went\n");
	return code == SQLITE_DONE ? COMMAND_FINE : COMMAND_FAILED;
}

static int read_file(sqlite3 *db, char **argv)
{
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	int result = finding_list_begin(db);

	(void)argv;
	if (!result)
		result = finding_list_make(db);
	if (result || output_is_text(format_name))
		return result ? result : print_findings(db);
	return run_sql(db, SELECT_FINDINGS, parameters,
	               &(struct output){ .format = output_format_find(format_name) });
}

const struct command command_findings = {
	.name = "findings",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Lists the greatest costs, each with its cure",
	.details =
		"Lists what a change could improve, the largest saving first. The number before a finding "
		"is its share of the time in SQLite, which is the most that its cure can save. Findings "
		"below 1 % are not printed. Findings about failed statements, large values, memory or disk "
		"space have no "
		"number, nor do those that take more time outside SQLite than all statements take inside.\n\n"
		"`evidence` is what was measured. `cure` is SQL, or what to change. `sure` is how certain "
		"the finding is: what was measured and what is not known. `see` is SQLite's document about "
		"it. Two findings may be about the same time.\n\n"
		"Times of parts of a statement come from samples, and have an error. Without samples, only "
		"findings that do not need them appear.",
	.examples = "  queryprof findings app.trace\n"
		    "  queryprof findings app.trace --caller orders.py:31\n"
		    "  queryprof findings app.trace --format json\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.read = read_file,
};
