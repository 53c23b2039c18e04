/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof advise: which indexes help, measured on private copies of the database.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/advise/choose.h"
#include "cmd/advise/limits.h"
#include "cmd/advise/private_copy.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/words.h"
#include "cmd/line/command.h"
#include "cmd/line/moment.h"
#include "cmd/ui/progress.h"
#include "sql_advise_results.h"
#include "sql_advise_rows.h"
#include "sql_advise_table.h"

#define TIME_DEFAULT INT64_C(60000000000)

static const char *database, *for_time, *limit, *format_name, *live;

static const struct command_option options[] = {
	COMMAND_OPTION(
		"database", "DATABASE", OPTION_FILE, &database,
		"the database on which the statements ran; it is copied, and nothing else is done with it"),
	COMMAND_OPTION("for", "TIME", OPTION_SECONDS, &for_time, "how long to measure (default 1min)"),
	LIMIT_OPTION(&limit, "statements in the table at most (default 20)"),
	PRIVATE_COPY_LIVE_OPTION(&live),
	OUTPUT_TEXT_FORMAT_OPTION(&format_name),
	{ 0 },
};

/* --- results, as a database in memory ------------------------------------------------------------------ */

enum {
	KIND = 1,
	SQL,
	RUNS,
	BEFORE,
	BEFORE_ERROR,
	AFTER,
	AFTER_ERROR,
	SAVED,
	SAVED_ERROR,
	BYTES,
	IS_CUT,
	REASON,
	STATEMENT,
	WRITTEN_BEFORE,
	WRITTEN_AFTER
};

static void put_double(sqlite3_stmt *row, int column, double value)
{
	if (isfinite(value))
		sqlite3_bind_double(row, column, value);
}

static void put_row(sqlite3_stmt *row, const char *kind, const char *sql)
{
	sqlite3_bind_text(row, KIND, kind, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, SQL, sql, -1, SQLITE_TRANSIENT);
	sqlite3_step(row);
	sqlite3_reset(row);
	sqlite3_clear_bindings(row);
}

static void put_index(sqlite3_stmt *row, const struct candidate *one, bool is_drop)
{
	put_double(row, SAVED, one->saved);
	put_double(row, SAVED_ERROR, sqrt(one->variance));
	sqlite3_bind_int64(row, BYTES, one->bytes);
	put_row(row, is_drop ? "drop" : "index", is_drop ? one->drop : one->create);
}

static void put_statement(sqlite3_stmt *row, const struct recorded *one, const struct turns *turns,
                          const struct written *written)
{
	char id[24];

	snprintf(id, sizeof(id), "%016llx", (unsigned long long)one->hash);
	sqlite3_bind_text(row, STATEMENT, id, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(row, RUNS, one->runs);
	if (!one->variants) {
		sqlite3_bind_text(row, REASON, one->reason, -1, SQLITE_STATIC);
		put_row(row, "not replayed", one->texts[0]);
		return;
	}
	if (turns && turns->saved.count) {
		put_double(row, BEFORE, turns->before.mean);
		put_double(row, BEFORE_ERROR, sums_error(&turns->before));
		put_double(row, AFTER, turns->after.mean);
		put_double(row, AFTER_ERROR, sums_error(&turns->after));
		const double scale = workload_scale(one, turns->before.mean);

		put_double(row, SAVED, scale * turns->saved.mean);
		put_double(row, SAVED_ERROR, scale * sums_error(&turns->saved));
		sqlite3_bind_int(row, IS_CUT, turns->is_cut);
	}
	if (written && (written->before || written->after)) {
		sqlite3_bind_int64(row, WRITTEN_BEFORE, written->before);
		sqlite3_bind_int64(row, WRITTEN_AFTER, written->after);
	}
	put_row(row, one->is_write ? "write" : "read", one->texts[0]);
}

static int put_results(sqlite3 *db, const struct workload *workload, const struct choice *choice)
{
	const bool is_worth = choice_is_worth(choice, workload);
	sqlite3_stmt *row = NULL;

	if (run_sql(db, sql_advise_results, NULL, &(struct output){ .table.is_bare = true }) !=
	            COMMAND_FINE ||
	    sqlite3_prepare_v2(db, "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	                       -1, &row, NULL))
		return COMMAND_FAILED;
	for (size_t i = 0; is_worth && i < choice->chosen.count; i++)
		put_index(row, &choice->chosen.items[i], false);
	for (size_t i = 0; i < choice->drops.count; i++)
		put_index(row, &choice->drops.items[i], true);
	for (size_t i = 0; i < workload->statements.count; i++)
		if (!workload->statements.items[i].is_other)
			put_statement(row, &workload->statements.items[i],
			              is_worth && i < choice->turns.count ? &choice->turns.items[i] : NULL,
			              is_worth && i < choice->written.count ? &choice->written.items[i]
			                                                    : NULL);
	sqlite3_finalize(row);
	return COMMAND_FINE;
}

/* --- text ----------------------------------------------------------------------------------------------- */

static void print_indexes(sqlite3 *db)
{
	sqlite3_stmt *rows = NULL;

	sqlite3_prepare_v2(db, sql_advise_rows, -1, &rows, NULL);
	while (rows && sqlite3_step(rows) == SQLITE_ROW) {
		char *line = strdup((const char *)sqlite3_column_text(rows, 0));

		if (line)
			text_blank_controls(line);
		printf("%s\n", line ? line : "");
		free(line);
	}
	sqlite3_finalize(rows);
}

static int print_text(sqlite3 *db, const struct workload *workload, const struct choice *choice)
{
	const bool is_worth = choice_is_worth(choice, workload);
	const struct output output = { .table = { .hides_empty = true, .folds_last = 1 } };
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	int result = COMMAND_FINE;

	if (is_worth)
		result = run_sql(db, sql_advise_table, parameters, &output);
	else
		printf("no index helps: %d measured, none saves 1 %% of the recorded time after what it "
		       "costs\n",
		       choice->tried);
	if (is_worth)
		printf("\n");
	print_indexes(db);
	if (choice->untried)
		printf("-- not measured for want of time: %d indexes; --for TIME gives more\n",
		       choice->untried);
	if (choice->drops.count)
		printf("-- observed: %lld s of the program; an index that helps another statement must "
		       "stay\n",
		       (long long)workload->seconds);
	return result;
}

static int print(const struct workload *workload, const struct choice *choice)
{
	sqlite3 *db = NULL;
	int result = sqlite3_open(":memory:", &db) || words_add(db) ? COMMAND_FAILED
	                                                            : put_results(db, workload, choice);

	progress_end();
	if (result)
		complain("advise: %s", sqlite3_errmsg(db));
	else if (output_is_text(format_name))
		result = print_text(db, workload, choice);
	else
		result = run_sql(db, "SELECT * FROM results", NULL,
		                 &(struct output){ .format = output_format_find(format_name) });
	sqlite3_close(db);
	return result;
}

/* --- the command ---------------------------------------------------------------------------------------- */

static int measure(const struct private_copies *copies, struct workload *workload, int64_t ns)
{
	struct connection connections[2] = { 0 };
	struct choice choice = { 0 };
	int result = COMMAND_FAILED;

	if (connection_open(&connections[0], "advise", database, copies->paths[0]) &&
	    connection_open(&connections[1], "advise", database, copies->paths[1])) {
		for (int i = 0; i < 2 && workload->has_foreign_keys; i++)
			connection_run(&connections[i], "PRAGMA foreign_keys = 1");
		progress_begin("preparing the statements");
		workload_prepare(workload, &connections[0], ns / 5);
		choice_make(&choice, workload, connections, ns - ns / 5);
		result = print(workload, &choice);
	}
	choice_free(&choice);
	for (int i = 0; i < 2; i++)
		connection_close(&connections[i]);
	return result;
}

static int run(int argc, char **argv)
{
	struct private_copies copies;
	struct workload workload;
	int64_t ns = TIME_DEFAULT;
	int result;

	(void)argc;
	if (!database) {
		complain("advise: --database DATABASE is missing: the database on which the statements of %s "
		         "ran",
		         argv[0]);
		return COMMAND_MISUSED;
	}
	if (for_time && (!moment_parse_duration(for_time, &ns) || ns < LIMIT_LEAST_NS)) {
		complain("advise: --for %s; expected a time of at least 1s, such as 5min", for_time);
		return COMMAND_MISUSED;
	}
	if (access(database, F_OK))
		return complain("advise: %s: %s", database, strerror(errno));
	result = workload_read(&workload, argv[0], database);
	if (!result)
		result = private_copies_make("advise", database, 2, live, &copies);
	if (!result) {
		limits_set("advise", copies.bytes, ns);
		result = measure(&copies, &workload, ns);
		private_copies_remove(&copies);
	}
	workload_free(&workload);
	return result;
}

const struct command command_advise = {
	.name = "advise",
	.arguments = "[FILE] --database DATABASE [OPTION]...",
	.summary = "Proposes indexes, and measures their savings and costs",
	.details =
		"Builds indexes on a private copy of the database, and runs the recorded statements "
		"alternately with and without them. advise proposes an index if it saves more time than it "
		"costs, by more than the error, over all recorded runs. \"no index helps\" is an answer, "
		"too.\n\n"
		"advise copies the database, its log and its journal as bytes into a folder in TMPDIR, and "
		"removes the folder at the end. It writes, creates and locks nothing next to the database. "
		"If a process has the database open, advise refuses, unless --live is given. It cannot see "
		"which files the processes of other users have open, but it sees their locks, and it refuses "
		"if the files change meanwhile.\n\n"
		"Statements run with the values of their parameters if these were recorded (record "
		"--setting log_query_parameters=1), otherwise with values from the columns that they are "
		"compared with. Writes are rolled back after each run, and measured without their commit. If "
		"recorded writes took less time, as many in one transaction do, they count by that time. "
		"`written` is what such a run alone would write to the database or its WAL, without and "
		"with the indexes. "
		"Statements that cannot run are listed as `not replayed`, with the reason, such as a "
		"function, collation or module that only the program has.\n\n"
		"`before` and `after` are means of the CPU time of a run, with one standard error. All "
		"pages are in the cache of the kernel; waits for a disk are not in these times. `saved` is "
		"for all recorded runs. advise measures with queryprof's own SQLite, which may plan "
		"differently from the program's.\n\n"
		"Candidates are indexes of columns that the statements compare, sort and group by, also with "
		"all other columns that they read, and of foreign keys. If a statement compares a column "
		"with a constant in its text, advise also tries partial indexes, of the rows with that "
		"constant. advise proposes to drop an index that no statement's plan uses if writes save "
		"time without it, unless it is unique or for a foreign key.",
	.examples = "  queryprof advise app.trace --database app.db\n"
		    "  queryprof advise app.trace --database app.db --for 5min --format json\n",
	.options = options,
	.reads_file = true,
	.arguments_max = 1,
	.run = run,
};
