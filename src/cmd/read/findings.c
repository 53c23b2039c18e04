/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof findings: what costs most, and what would change it.
 *
 * A finding is two files of sql/findings: NAME.sql selects it, NAME.txt says it (see sql/README.md). The
 * build lists them; no code knows one of them.
 */
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "cmd/file/file_name.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/terminal.h"
#include "findings_list.h" /* made by the build */
#include "sql_findings.h"
#include "sql_statement_lines.h"

static const struct finding {
	const char *name, *sql, *text;
} findings[] = { FINDINGS };

static const char *limit, *format_name;

static const char *format_at(size_t index)
{
	return index ? output_format_at(index) : "text"; /* instead of a table */
}

static const struct command_option options[] = {
	LIMIT_OPTION(&limit, "findings at most (default 10)"),
	{ .name = "format",
	  .value = "FORMAT",
	  .to = &format_name,
	  .kind = OPTION_WORD,
	  .word_at = format_at,
	  .help = "text, csv, json or line; text if not given" },
	{ 0 },
};

/* --- the functions of its SQL ---------------------------------------------------------------- */

/* duration(NS): "1.5 s", "20 ms". */
static void duration(sqlite3_context *context, int count, sqlite3_value **values)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	const double ns = sqlite3_value_double(values[0]);
	size_t unit = 0;

	(void)count;
	while (unit < 3 && ns < units[unit].ns)
		unit++;
	const double value = ns / units[unit].ns;
	char *text = sqlite3_mprintf(value < 10 ? "%.1f %s" : "%,.0f %s", value, units[unit].name);

	sqlite3_result_text(context, text, -1, sqlite3_free);
}

struct word {
	const char *start;
	size_t size;
};

/* The word that ends before `at`, without the quotes that it may be in. Size 0: something else does. */
static struct word word_before(const char *text, const char *at)
{
	const char *quotes = "\"\"``[]", *closing;
	const char *end = at, *start;

	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	start = end;
	closing = end > text ? strchr(quotes, end[-1]) : NULL;
	if (closing && (closing - quotes) % 2 == 0)
		closing++; /* opening and closing are one character */
	if (closing && end - text > 1) {
		for (start = --end; start > text && start[-1] != closing[-1];)
			start--;
		return (struct word){ start, (size_t)(end - start) };
	}
	while (start > text && text_is_word(start[-1]))
		start--;
	return (struct word){ start, (size_t)(end - start) };
}

static bool is_one_of(struct word word, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == word.size && !sqlite3_strnicmp(word.start, *words, (int)word.size))
			return true;
	return false;
}

/* Whether a table's name may follow what ends before `at`. */
static bool precedes_table(const char *query, const char *at)
{
	static const char *const words[] = { "FROM", "JOIN", "INTO", "UPDATE", "TABLE", NULL };

	while (at > query && strchr(" \t\r\n\"`[", at[-1]))
		at--;
	return at > query && (at[-1] == ',' || at[-1] == '(' || is_one_of(word_before(query, at), words));
}

/* tableOf(QUERY, NAME): the table that the query calls NAME: that itself, or the table before an alias; '' if
 * that is not known. */
static void table_of(sqlite3_context *context, int count, sqlite3_value **values)
{
	static const char *const as[] = { "AS", NULL };
	const char *query = (const char *)sqlite3_value_text(values[0]);
	const char *name = (const char *)sqlite3_value_text(values[1]);
	const size_t size = name ? strlen(name) : 0;

	(void)count;
	sqlite3_result_text(context, "", 0, SQLITE_STATIC);
	for (const char *at = query; at && size && *at; at++) {
		struct word word;

		if (sqlite3_strnicmp(at, name, (int)size) != 0 || text_is_word(at[size]) || at[size] == '.' ||
		    (at > query && (text_is_word(at[-1]) || at[-1] == '.')))
			continue;
		word = (struct word){ at, size };
		if (!precedes_table(query, at)) {
			word = word_before(query, at);
			if (is_one_of(word, as))
				word = word_before(query, word.start);
			if (!word.size || !precedes_table(query, word.start))
				continue;
		}
		sqlite3_result_text(context, word.start, (int)word.size, SQLITE_TRANSIENT);
		return;
	}
}

static int add_functions(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
	int code = sqlite3_create_function(db, "duration", 1, flags, NULL, duration, NULL, NULL);

	if (!code)
		code = sqlite3_create_function(db, "tableOf", 2, flags, NULL, table_of, NULL, NULL);
	if (code)
		complain("findings: %s", sqlite3_errmsg(db));
	return code ? COMMAND_FAILED : COMMAND_FINE;
}

/* --- finding ----------------------------------------------------------------------------------- */

static const char *column_of(sqlite3_stmt *row, const char *name, size_t size)
{
	for (int i = 0; i < sqlite3_column_count(row); i++) {
		const char *column = sqlite3_column_name(row, i);

		if (strlen(column) == size && !strncmp(column, name, size))
			return (const char *)sqlite3_column_text(row, i);
	}
	return NULL;
}

/* The line of the text that begins with the key, with the row's values in place of
 * {column}. */
static char *fill(const char *text, const char *key, sqlite3_stmt *row)
{
	sqlite3_str *filled = sqlite3_str_new(NULL);
	const size_t size = strlen(key);

	while (*text && strncmp(text, key, size) != 0) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	for (text += *text ? size : 0; *text && *text != '\n'; text++) {
		const size_t name = *text == '{' ? strcspn(text + 1, "}\n") : 0;
		const char *value = name ? column_of(row, text + 1, name) : NULL;

		if (name)
			text += name + 1;
		if (name)
			sqlite3_str_appendall(filled, value ? value : "(not known)");
		else
			sqlite3_str_appendchar(filled, 1, *text);
	}
	return sqlite3_str_finish(filled);
}

#define TABLE                                                                                                \
	"DROP TABLE IF EXISTS temp.findings; "                                                               \
	"CREATE TEMP TABLE findings (finding TEXT, saved REAL, error REAL, hash INTEGER, title TEXT, "       \
	"evidence TEXT, cure TEXT, sure TEXT, see TEXT)"

enum { INSERT_NAME = 1, INSERT_SAVED, INSERT_ERROR, INSERT_HASH, INSERT_TEXTS };
static const char *const texts[] = { "title: ", "evidence: ", "cure: ", "sure: ", "see: " };

static int insert(sqlite3_stmt *insertion, const struct finding *finding, sqlite3_stmt *row)
{
	static const char *const numbers[] = { "saved", "error", "hash" };
	int code;

	sqlite3_reset(insertion);
	sqlite3_clear_bindings(insertion);
	sqlite3_bind_text(insertion, INSERT_NAME, finding->name, -1, SQLITE_STATIC);
	for (int i = 0; i < 3; i++)
		for (int at = 0; at < sqlite3_column_count(row); at++)
			if (!strcmp(sqlite3_column_name(row, at), numbers[i]))
				sqlite3_bind_value(insertion, INSERT_SAVED + i,
				                   sqlite3_column_value(row, at));
	for (int i = 0; i < 5; i++)
		sqlite3_bind_text(insertion, INSERT_TEXTS + i, fill(finding->text, texts[i], row), -1,
		                  sqlite3_free);
	code = sqlite3_step(insertion);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int find(sqlite3 *db, const struct finding *finding, sqlite3_stmt *insertion)
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, finding->sql, -1, &rows, NULL);

	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW)
		code = insert(insertion, finding, rows);
	sqlite3_finalize(rows);
	if (code == SQLITE_DONE)
		return COMMAND_FINE;
	complain("findings: %s: %s", finding->name, sqlite3_errmsg(db));
	return COMMAND_FAILED;
}

static int find_all(sqlite3 *db)
{
	const struct sql_parameter all[] = { { ":limit", "1000000" }, { NULL, NULL } };
	const struct output silent = { .table.is_bare = true };
	sqlite3_stmt *insertion = NULL;
	int result = add_functions(db);

	if (!result)
		result = run_sql(db, sql_statement_lines, all, &silent);
	if (!result)
		result = run_sql(db, sql_findings, NULL, &silent);
	if (!result)
		result = run_sql(db, TABLE, NULL, &silent);
	if (!result && sqlite3_prepare_v2(db, "INSERT INTO temp.findings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	                                  -1, &insertion, NULL) != SQLITE_OK)
		result = COMMAND_FAILED;
	for (size_t i = 0; !result && i < sizeof(findings) / sizeof(*findings); i++)
		result = find(db, &findings[i], insertion);
	sqlite3_finalize(insertion);
	return result;
}

/* --- printing ---------------------------------------------------------------------------------- */

/* Findings that could save 1 % of the time, and findings that are not about time. */
#define SELECT_FINDINGS                                                                                      \
	"WITH whole AS (SELECT total(wall) AS ns FROM temp.finding_statements) "                             \
	"SELECT finding, round(100 * saved / max(ns, 1), 1) AS \"share_%\", round(saved / 1e6, 3) AS "       \
	"saved_ms, "                                                                                         \
	"round(error / 1e6, 3) AS error_ms, title, evidence, cure, sure, see, "                              \
	"printf('%016x', f.hash) AS statement, coalesce(caller, '') AS caller, "                             \
	"coalesce(caller_function, '') AS caller_function, coalesce(query, '') AS query "                    \
	"FROM whole, temp.findings AS f LEFT JOIN temp.finding_statements AS s ON s.hash = f.hash "          \
	"WHERE saved IS NULL OR saved >= 0.01 * ns ORDER BY saved DESC, finding, f.hash "                    \
	"LIMIT coalesce(CAST(:limit AS INTEGER), 10)"

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

static const char *value_of(sqlite3_stmt *row, enum column column)
{
	const char *value = (const char *)sqlite3_column_text(row, column);

	return value ? value : "";
}

/* Frees the text, which begins at the column `indent`. */
static void print_line(int indent, char *text)
{
	terminal_print_words(text ? text : "", indent, indent);
	printf("\n");
	sqlite3_free(text);
}

/* Without a number if it is not about time. */
static void print_title(sqlite3_stmt *row, int number, int indent)
{
	char share[16] = "", *title;

	if (sqlite3_column_type(row, SAVED) != SQLITE_NULL)
		snprintf(share, sizeof(share), "%.0f %%: ", sqlite3_column_double(row, SHARE));
	title = sqlite3_mprintf("%s%s (%s)", share, value_of(row, TITLE), value_of(row, FINDING));
	printf("%*d. ", indent - 2, number);
	print_line(indent, title);
}

static void print_finding(sqlite3_stmt *row, int number)
{
	const int indent = number < 10 ? 3 : 4;
	const char *query = value_of(row, QUERY);
	char *text;

	print_title(row, number, indent);
	printf("%*s[%.8s] ", indent, "", value_of(row, STATEMENT));
	terminal_print_cut(query, strlen(query), terminal_room(indent + ID), false);
	printf("\n");
	if (*value_of(row, CALLER)) {
		const char *function = value_of(row, FUNCTION);

		text = sqlite3_mprintf("from %s%s%s%s", file_name_here(value_of(row, CALLER)),
		                       *function ? " (" : "", function, *function ? ")" : "");
		terminal_print_padding(indent);
		print_line(indent, text);
	}
	for (enum column line = EVIDENCE; line <= SEE; line++) {
		const bool has_error = line == EVIDENCE && sqlite3_column_type(row, ERROR_MS) != SQLITE_NULL;

		text = sqlite3_mprintf(has_error ? "%s%s; the error of this time is %.0f ms" : "%s%s",
		                       texts[line - TITLE], value_of(row, line),
		                       sqlite3_column_double(row, ERROR_MS));
		terminal_print_padding(indent);
		print_line(indent, text);
	}
}

static int print_findings(sqlite3 *db)
{
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, SELECT_FINDINGS, -1, &rows, NULL), number = 0;

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

static int run(int argc, char **argv)
{
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	const bool is_text = !format_name || !strcmp(format_name, "text");
	int result = selection_check("findings", &selection);
	sqlite3 *db = result ? NULL : selection_open(argv[0], &selection);

	(void)argc;
	if (!db)
		return result ? result : COMMAND_FAILED;
	result = selection_require(db, argv[0], &selection);
	if (!result)
		result = find_all(db);
	if (!result)
		result = is_text ? print_findings(db)
		                 : run_sql(db, SELECT_FINDINGS, parameters,
		                           &(struct output){ .format = output_format_find(format_name) });
	trace_file_close(db);
	return result;
}

const struct command command_findings = {
	.name = "findings",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Says what costs most, and what would change it",
	.details =
		"Prints what takes a part of the time that a change could save, the largest part first. The "
		"number before a finding is that part of the time in SQLite: no cure saves more. Findings of "
		"less than 1 % are not printed. What makes statements fail is printed without a number.\n\n"
		"`evidence` is what was measured. `cure` is SQL, or what to change. `sure` says what is "
		"measured "
		"and what is not known. `see` is SQLite's document about it. Two findings may be about the "
		"same "
		"time.\n\n"
		"Times of parts of a statement are from samples, and have an error. Without samples "
		"only findings that need none are made.",
	.examples = "  queryprof findings app.trace\n"
		    "  queryprof findings app.trace --caller orders.py:31\n"
		    "  queryprof findings app.trace --format json\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.run = run,
};
