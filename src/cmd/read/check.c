/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof check: whether statements stay within limits, for tests and CI.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/file/words.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/line/moment.h"
#include "cmd/read/baseline.h"
#include "cmd/read/limits_file.h"
#include "sql_check.h"
#include "sql_check_callers.h"
#include "sql_check_limits.h"
#include "sql_check_regressed.h"
#include "sql_check_rule.h"
#include "sql_diff_means.h"
#include "store/file/database.h"

static const char *max_scan, *no_sort, *no_auto_index, *max_time, *regressed, *against, *format_name,
	*max_runs, *config, *baseline, *update;

#define CONFIG ".queryprof.toml"
#define EXCEPT_MAX 1000
static const char *exceptions[EXCEPT_MAX];
static size_t exceptions_count;

static const char *format_at(size_t index)
{
	static const char *const names[] = { "text", "json", "csv", "junit", "tap", "github" };
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct command_option options[] = {
	COMMAND_OPTION("max-scan", "ROWS", OPTION_NUMBER, &max_scan,
	               "the rows of whole tables that one run may visit"),
	COMMAND_FLAG("no-sort", &no_sort, "no run may sort rows"),
	COMMAND_FLAG("no-auto-index", &no_auto_index, "SQLite may not build an index for a run"),
	COMMAND_OPTION("max-time", "TIME", OPTION_PERIOD, &max_time,
	               "the time inside SQLite that one run may take, such as 50ms"),
	COMMAND_OPTION("regressed", "RATIO", OPTION_TEXT, &regressed,
	               "how many times as long as in the file of --against a mean run may take, such as 1.3"),
	COMMAND_OPTION("against", "FILE", OPTION_FILE, &against, "the earlier recording, for --regressed"),
	COMMAND_OPTION(
		"max-runs", "N", OPTION_NUMBER, &max_runs,
		"the runs of one statement in one burst: a request, or a thread without a pause (N + 1)"),
	COMMAND_OPTION("config", "FILE", OPTION_FILE, &config,
	               "limits, for all statements and for single ones (default " CONFIG
	               " in this folder, if it exists)"),
	COMMAND_OPTION("baseline", "FILE", OPTION_FILE, &baseline,
	               "a file of known violations, which are not reported"),
	COMMAND_FLAG("update", &update, "write what exceeds limits now to the file of --baseline"),
	COMMAND_OPTION("except", "STATEMENT", OPTION_STATEMENT, NULL,
	               "do not check this statement: its id, or the beginning of it; may be repeated"),
	COMMAND_WORD("format", "FORMAT", &format_name,
	             "text (default): a line for each violation; json, csv; junit: XML; tap; github: "
	             "annotations of a "
	             "workflow",
	             format_at),
	{ 0 },
};

static int take(const struct command_option *option, const char *value)
{
	(void)option;
	if (!*value || value[strspn(value, "0123456789abcdef")] || strlen(value) > 16) {
		complain("check: --except %s; expected the id of a statement, as queryprof queries shows it",
		         value);
		return COMMAND_MISUSED;
	}
	if (exceptions_count == EXCEPT_MAX) {
		complain("check: more than %d times --except", EXCEPT_MAX);
		return COMMAND_MISUSED;
	}
	exceptions[exceptions_count++] = value;
	return COMMAND_FINE;
}

/* --- the limits --------------------------------------------------------------------- */

/* The entries before `regressed` are in the order of limits_key. */
#define LIMITS 6
static const struct {
	const char *name, **value, *title; /* title: a format for the value */
} limits[LIMITS] = {
	{ "max-scan", &max_scan, "no run visits more than %s rows of whole tables" },
	{ "no-sort", &no_sort, "no run sorts" },
	{ "no-auto-index", &no_auto_index, "SQLite builds no index for a run" },
	{ "max-time", &max_time, "no run takes longer than %s" },
	{ "max-runs", &max_runs, "no statement has more than %s runs in one burst" },
	{ "regressed", &regressed, "no run takes %s times as long as before" },
};

static limits_vector configured;

/* A number 0 is a limit; a flag 0 is not. */
static bool is_given(int limit, const char *value)
{
	return value && ((limit != LIMIT_SORT && limit != LIMIT_INDEX) || strcmp(value, "0") != 0);
}

/* Reads the file of limits. The command line takes precedence over its [limits]. */
static int read_config(void)
{
	int result = COMMAND_FINE;

	if (config || access(CONFIG, F_OK) == 0)
		result = limits_file_read(config ? config : CONFIG, &configured);
	for (int i = 0; !result && configured.count && i < LIMITS_ID; i++) {
		const char *value = configured.items[0].values[i];

		if (!*limits[i].value && is_given(i, value))
			*limits[i].value = value;
	}
	return result;
}

/* Whether any statement has this limit. */
static bool is_limited(int limit)
{
	bool is_any = *limits[limit].value != NULL;

	for (size_t i = 1; limit < LIMITS_ID && i < configured.count; i++)
		is_any |= is_given(limit, configured.items[i].values[limit]);
	return is_any;
}

/* COMMAND_MISUSED after a complaint. */
static int check_options(void)
{
	char *end = NULL;
	const double ratio = regressed ? strtod(regressed, &end) : 0;
	bool is_any = false;
	int64_t ns;

	for (int i = 0; i < LIMITS; i++)
		is_any |= is_limited(i);
	if (!is_any)
		complain("check: no limit is given: --max-scan, --no-sort, --no-auto-index, --max-time, "
		         "--max-runs, --regressed, or a file " CONFIG " (see queryprof check --help)");
	else if (max_time && (!moment_parse_duration(max_time, &ns) || ns <= 0))
		complain("check: --max-time %s; expected a time with its unit, such as 50ms", max_time);
	else if (regressed && (!(ratio >= 1 && ratio <= 1e6) || *end))
		complain("check: --regressed %s; expected a ratio of at least 1, such as 1.3", regressed);
	else if (!regressed != !against)
		complain("check: %s", regressed ? "--regressed needs the file to compare with: --against FILE"
		                                : "--against needs the allowed ratio: --regressed 1.3");
	else if (update && !baseline)
		complain("check: --update needs the file to write: --baseline FILE");
	else
		return COMMAND_FINE;
	return COMMAND_MISUSED;
}

/* --- finding violations --------------------------------------------------------------- */

static int attach(sqlite3 *db)
{
	sqlite3 *other = trace_file_open(against); /* complains if it is not a trace file */
	char *uri = other ? trace_file_uri(against) : NULL;
	const struct sql_parameter parameters[] = { { ":uri", uri }, { NULL, NULL } };
	int result = uri ? run_sql(db, "ATTACH :uri AS base", parameters,
	                           &(struct output){ .table.is_bare = true })
	                 : COMMAND_FAILED;

	if (other)
		trace_file_close(other);
	sqlite3_free(uri);
	return result;
}

static int except(sqlite3 *db)
{
	int result = COMMAND_FINE;

	for (size_t i = 0; !result && i < exceptions_count; i++) {
		const struct sql_parameter parameters[] = { { ":statement", exceptions[i] }, { NULL, NULL } };

		result = run_sql(db,
		                 "DELETE FROM temp.selected_statements WHERE "
		                 "substr(printf('%016x', hash), 1, length(:statement)) = :statement",
		                 parameters, &(struct output){ .table.is_bare = true });
	}
	return result;
}

static const struct output silent = { .table.is_bare = true };

/* Runs SQL with the limits as parameters, the time in ns. */
static int run_with(sqlite3 *db, const char *sql, const char *const *values)
{
	char time[24];
	int64_t ns = 0;
	const bool has_time = values[LIMIT_TIME] && moment_parse_duration(values[LIMIT_TIME], &ns);

	snprintf(time, sizeof(time), "%lld", (long long)ns);
	const struct sql_parameter parameters[] = { { ":max_scan", values[LIMIT_SCAN] },
		                                    { ":no_sort", values[LIMIT_SORT] },
		                                    { ":no_auto_index", values[LIMIT_INDEX] },
		                                    { ":max_time", has_time ? time : NULL },
		                                    { ":max_runs", values[LIMIT_RUNS] },
		                                    { ":id", values[LIMITS_ID] },
		                                    { ":like", values[LIMITS_LIKE] },
		                                    { ":except", values[LIMITS_EXCEPT] },
		                                    { NULL, NULL } };
	return run_sql(db, sql, parameters, &silent);
}

static int set_limits(sqlite3 *db)
{
	const char *all[LIMITS_KEYS] = { NULL };
	int result;

	for (int i = 0; i < LIMITS_ID; i++)
		all[i] = *limits[i].value;
	result = run_with(db, sql_check_limits, all);
	for (size_t i = 1; !result && i < configured.count; i++)
		result = run_with(db, sql_check_rule, (const char *const *)configured.items[i].values);
	return result;
}

static int find_violations(sqlite3 *db)
{
	const struct sql_parameter parameters[] = { { ":regressed", regressed }, { NULL, NULL } };
	int result = except(db);

	if (!result)
		result = set_limits(db);
	if (!result)
		result = run_sql(db, sql_check, NULL, &silent);
	if (!result && regressed && !(result = attach(db)) &&
	    !(result = run_sql(db, sql_diff_means, NULL, &silent)))
		result = run_sql(db, sql_check_regressed, parameters, &silent);
	return result ? result : run_sql(db, sql_check_callers, NULL, &silent);
}

/* --- printing them ------------------------------------------------------------------------ */

#define SELECT_VIOLATIONS                                                                                    \
	"SELECT check_name AS \"check\", message, printf('%016x', hash) AS statement, caller, "              \
	"caller_function, oneLine(query) AS query FROM temp.violations WHERE NOT unknown"

enum column { CHECK, MESSAGE, STATEMENT, CALLER, FUNCTION, QUERY, COLUMNS };

/* Omits characters that would end the text or control a terminal, and those in `also`, which a part of an
 * annotation must not contain. */
static void put_text(const char *text, size_t size, const char *format, const char *also)
{
	for (const char *end = text + size; text < end; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c < ' ' || c == 0x7f)
			putchar('?');
		else if (!strcmp(format, "junit") && strchr("<>&\"", c))
			printf("&#%u;", (unsigned)c);
		else if (!strcmp(format, "github") && (c == '%' || strchr(also, c)))
			printf("%%%02X", (unsigned)c);
		else
			putchar(c);
	}
}

static void put_annotation(const char *const *row)
{
	const char *caller = row[CALLER], *colon = strrchr(caller, ':');

	fputs("::error ", stdout);
	if (colon) {
		fputs("file=", stdout);
		put_text(caller, (size_t)(colon - caller), "github", ":,");
		printf(",line=%s,", colon + 1);
	}
	printf("title=queryprof %s::", row[CHECK]);
}

static void put_violation(const char *const *row, const char *format)
{
	if (!strcmp(format, "github")) {
		put_annotation(row);
	} else {
		if (!strcmp(format, "tap"))
			printf("# ");
		else if (!strcmp(format, "text"))
			printf("%s: ", row[CHECK]);
		put_text(row[CALLER], strlen(row[CALLER]), format, "");
		if (*row[FUNCTION]) {
			fputs(" (", stdout);
			put_text(row[FUNCTION], strlen(row[FUNCTION]), format, "");
			fputs(")", stdout);
		}
		fputs(*row[CALLER] ? ": " : "", stdout);
	}
	put_text(row[MESSAGE], strlen(row[MESSAGE]), format, "");
	fputs(": ", stdout);
	put_text(row[QUERY], strlen(row[QUERY]), format, "");
	printf(" [%.8s]\n", row[STATEMENT]);
}

/* The violations of one limit. */
static int print_rows(sqlite3 *db, int limit, const char *format)
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, SELECT_VIOLATIONS " AND check_name = ?1 ORDER BY rowid", -1, &rows,
	                              NULL);

	sqlite3_bind_text(rows, 1, limits[limit].name, -1, SQLITE_STATIC);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		const char *row[COLUMNS];

		if ((code = sqlite3_step(rows)) != SQLITE_ROW)
			break;
		for (int i = 0; i < COLUMNS; i++) {
			row[i] = (const char *)sqlite3_column_text(rows, i);
			row[i] = row[i] ? row[i] : "";
		}
		row[CALLER] = words_path_here(row[CALLER]);
		put_violation(row, format);
	}
	if (code != SQLITE_DONE)
		complain("check: %s", sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? COMMAND_FINE : COMMAND_FAILED;
}

static int64_t count_of(sqlite3 *db, int limit, bool is_unknown)
{
	char sql[160];

	snprintf(sql, sizeof(sql),
	         "SELECT count(*) FROM temp.violations WHERE check_name = '%s' AND %sunknown",
	         limits[limit].name, is_unknown ? "" : "NOT ");
	return database_number(db, sql, 0);
}

static void print_title(int limit)
{
	if (*limits[limit].value)
		printf(limits[limit].title, *limits[limit].value);
	else
		printf("%s of single statements", limits[limit].name);
}

/* A test for each limit. */
static int print_tests(sqlite3 *db, const char *format)
{
	const bool is_junit = !strcmp(format, "junit"), is_tap = !strcmp(format, "tap");
	int64_t failures = 0;
	int tests = 0, number = 0, result = COMMAND_FINE;

	for (int i = 0; i < LIMITS; i++)
		if (is_limited(i)) {
			tests++;
			failures += count_of(db, i, false) > 0;
		}
	if (is_junit)
		printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		       "<testsuite name=\"queryprof\" tests=\"%d\" failures=\"%lld\" errors=\"0\">\n",
		       tests, (long long)failures);
	if (is_tap)
		printf("1..%d\n", tests);
	for (int i = 0; !result && i < LIMITS; i++) {
		const int64_t count = count_of(db, i, false);

		if (!is_limited(i))
			continue;
		if (is_tap) {
			printf("%sok %d - ", count ? "not " : "", ++number);
			print_title(i);
			putchar('\n');
		} else if (is_junit) {
			printf("  <testcase classname=\"queryprof\" name=\"");
			print_title(i);
			printf(count ? "\">\n    <failure message=\"%lld %s\">\n" : "\"/>\n",
			       (long long)count, count == 1 ? "statement" : "statements");
		}
		result = print_rows(db, i, format);
		if (is_junit && count)
			printf("    </failure>\n  </testcase>\n");
	}
	if (is_junit)
		printf("</testsuite>\n");
	if (!strcmp(format, "text") && !failures)
		printf("%lld statements checked, none exceeds a limit\n",
		       (long long)database_number(db, "SELECT count(*) FROM temp.selected_statements", 0));
	return result;
}

static void complain_unknown(sqlite3 *db, int limit)
{
	const int64_t unknown = count_of(db, limit, true);

	if (unknown)
		complain("check: --%s: %lld %s runs that were not logged; %s. To know each: queryprof record "
		         "--setting log_queries_min_query_duration_ns=0",
		         limits[limit].name, (long long)unknown,
		         unknown == 1 ? "statement has" : "statements have",
		         limit == LIMIT_RUNS ? "these are in no burst"
		                             : "one of them may visit more rows, though not on average");
}

static int print(sqlite3 *db)
{
	const char *format = format_name ? format_name : "text";
	const bool is_rows = !strcmp(format, "json") || !strcmp(format, "csv");
	const int result = is_rows ? run_sql(db, SELECT_VIOLATIONS " ORDER BY rowid", NULL,
	                                     &(struct output){ .format = output_format_find(format) })
	                           : print_tests(db, format);

	for (int i = 0; i < LIMITS; i++)
		complain_unknown(db, i);
	return result;
}

static int check_file(sqlite3 *db, const char *path)
{
	const struct selection all = { 0 };
	int result = selection_require(db, path, &all);

	if (!result)
		result = find_violations(db);
	if (!result && update)
		return baseline_write(db, baseline, path);
	if (!result && baseline)
		result = baseline_apply(db, baseline);
	if (!result)
		result = print(db);
	if (!result && database_number(db, "SELECT count(*) FROM temp.violations WHERE NOT unknown", 0))
		result = COMMAND_FAILED;
	return result;
}

static int run(int argc, char **argv)
{
	const struct selection all = { 0 };
	int result = read_config();

	(void)argc;
	if (!result)
		result = check_options();
	if (!result) {
		sqlite3 *db = selection_open(argv[0], &all);

		result = db ? check_file(db, argv[0]) : COMMAND_FAILED;
		trace_file_close(db);
	}
	limits_file_free(&configured);
	return result;
}

const struct command command_check = {
	.name = "check",
	.arguments = "[FILE] LIMIT...",
	.summary = "Checks statements against limits, for tests and CI",
	.details =
		"Prints a line for each limit that a statement exceeds, with the line of the program that "
		"ran it, if that is known. Exit status 0: all statements keep all limits. Statements that "
		"differ only in literals are one.\n\n"
		"--max-scan counts as SQLite does (SQLITE_STMTSTATUS_FULLSCAN_STEP). Each logged run is "
		"checked. Of runs that were not logged only the sum is known, so their mean is checked, and "
		"check reports if a single one may exceed the limit. The other limits are checked for all "
		"runs. --max-time does not include preparing.\n\n"
		"--regressed compares the mean times of all runs, without preparing. A statement exceeds it "
		"if Welch's t-test finds a larger ratio than the allowed one (one-sided, 2.5 %). This "
		"requires two runs in each file.\n\n"
		"--max-runs finds statements that run once for each row of another one. In each burst (see "
		"the view bursts), the statement with most runs is checked. Bursts contain only logged "
		"runs.\n\n"
		"A file of limits is TOML: a table [limits] for all statements, and tables [[statement]] "
		"with the id of a statement or a pattern of its text (like), with limits of its own, or "
		"except = true. Keys are max-scan, no-sort, no-auto-index, max-time and max-runs. Options "
		"override [limits]. If several tables match a statement, the last one applies.\n\n"
		"A baseline accepts known violations: --update writes them to the file, and later check "
		"reports only new ones.",
	.examples = "  queryprof check app.trace --max-scan 10000 --format junit\n"
		    "  queryprof check app.trace --max-time 50ms --except 7ee8fe74\n"
		    "  queryprof check app.trace --max-runs 20 --baseline known.txt --update\n"
		    "  queryprof check app.trace --regressed 1.3 --against base.trace\n",
	.options = options,
	.reads_file = true,
	.arguments_max = 1,
	.take = take,
	.run = run,
};
