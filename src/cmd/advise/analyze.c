/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof analyze: a statement's plan with measured times, and a comparison with other ways to run it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/advise/estimates.h"
#include "cmd/advise/host_plan.h"
#include "cmd/advise/limits.h"
#include "cmd/advise/node_times.h"
#include "cmd/advise/private_copy.h"
#include "cmd/advise/turns.h"
#include "cmd/advise/way.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/file/words.h"
#include "cmd/line/command.h"
#include "cmd/line/moment.h"
#include "cmd/ui/progress.h"
#include "sql_advise_compared.h"
#include "sql_advise_compared_table.h"

#define TIME_DEFAULT INT64_C(10000000000)
#define WAYS_MAX 8
#define RUNS_MIN 30
#define RUNS_MAX 100000
#define RUN_SLOWER 10 /* on a busy machine, a run may take this many times as long as the first one */

static const char *for_time, *format_name, *live, *host;
static VECTOR(const char *) values;
static VECTOR(struct way) others;

enum { OPTION_PARAM, OPTION_AGAINST, OPTION_PRAGMA };

static const struct command_option options[] = {
	[OPTION_PARAM] = COMMAND_OPTION("param", "[NAME=]VALUE", OPTION_TEXT, NULL,
	                                "a parameter's value, of the next one without a NAME: a number, "
	                                "NULL, or a text; may be repeated"),
	[OPTION_AGAINST] =
		COMMAND_OPTION("against", "STATEMENT", OPTION_TEXT, NULL,
	                       "compare with this statement, with the same values; may be repeated"),
	[OPTION_PRAGMA] = COMMAND_OPTION(
		"pragma", "NAME=VALUE", OPTION_TEXT, NULL,
		"compare with this PRAGMA of the connection, such as cache_size=-65536; may be repeated"),
	COMMAND_OPTION("for", "TIME", OPTION_SECONDS, &for_time, "how long to measure at most (default 10s)"),
	COMMAND_OPTION("host", "FILE", OPTION_FILE, &host,
	               "the program's SQLite, whose plan is compared: a shared library, or a recording of "
	               "the program "
	               "(default " HOST_PLAN_LIBRARY ")"),
	PRIVATE_COPY_LIVE_OPTION(&live),
	OUTPUT_TEXT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static int take(const struct command_option *option, const char *value)
{
	if (option == &options[OPTION_PARAM] && vector_push(&values, value))
		return COMMAND_FINE;
	if (option == &options[OPTION_PRAGMA] && !way_may_set(value))
		complain("analyze: --pragma %s; expected NAME=VALUE, with a NAME of %s", value, way_pragmas);
	else if (others.count == WAYS_MAX)
		complain("analyze: more than %d of --against and --pragma", WAYS_MAX);
	else if (vector_push(&others, option == &options[OPTION_PRAGMA] ? (struct way){ .pragma = value }
	                                                                : (struct way){ .sql = value }))
		return COMMAND_FINE;
	return COMMAND_MISUSED;
}

/* --- rows --------------------------------------------------------------------------------------------- */

/* The result of a way: equal sums in any order, equal chains in the same order. */
struct rows {
	int64_t count, ns; /* ns: of this run */
	uint64_t sum, chain;
	bool is_whole, is_write;
};

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_row(sqlite3_stmt *row)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < sqlite3_column_count(row); i++) {
		const int type = sqlite3_column_type(row, i);
		const void *bytes =
			type == SQLITE_BLOB ? sqlite3_column_blob(row, i) : sqlite3_column_text(row, i);

		hash = add_bytes(hash, &type, sizeof(type));
		hash = add_bytes(hash, bytes, (size_t)sqlite3_column_bytes(row, i));
	}
	return hash;
}

/* Runs the statement once, and reports whether it can be run. counts: receives SQLite's counts of its loops.
 */
static bool read_rows(const struct way *way, struct connection *connection, int64_t most_ns,
                      struct rows *rows, plan_counts *counts)
{
	sqlite3_stmt *statement = way_prepare(way, connection);
	const int64_t began = connection_clock_ns();
	int code = SQLITE_ERROR;
	double ns;

	*rows = (struct rows){ 0 };
	if (statement && (rows->is_write = !sqlite3_stmt_readonly(statement))) {
		code = connection_time(connection, statement, most_ns, &ns, NULL);
	} else if (statement) {
		connection->end_ns = began + most_ns;
		while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
			const uint64_t hash = hash_row(statement);

			rows->count++;
			rows->sum += hash;
			rows->chain = add_bytes(rows->chain, &hash, sizeof(hash));
		}
		connection->end_ns = 0;
		if (code != SQLITE_DONE && code != SQLITE_INTERRUPT)
			snprintf(connection->error, sizeof(connection->error), "%s",
			         sqlite3_errmsg(connection->db));
	}
	rows->ns = connection_clock_ns() - began;
	if (counts && code == SQLITE_DONE)
		estimates_read(connection, statement, counts);
	sqlite3_finalize(statement);
	rows->is_whole = code == SQLITE_DONE;
	return code == SQLITE_DONE || code == SQLITE_INTERRUPT;
}

/* The same; also false if the run had to be ended. Notes the run's time and counts. */
static bool read_whole(struct way *way, struct connection *connection, int64_t most_ns, struct rows *rows)
{
	if (!read_rows(way, connection, most_ns, rows, &way->counts))
		return false;
	way->run_ns = rows->ns;
	if (!rows->is_whole)
		snprintf(connection->error, sizeof(connection->error),
		         "a run takes longer than %.1f s; --for TIME gives more", (double)most_ns / 1e9);
	return rows->is_whole;
}

/* --- comparing ------------------------------------------------------------ */

static sqlite3_stmt *prepare(const struct side *side, int variant)
{
	(void)variant;
	return way_prepare(side->what, side->connection);
}

static int put_compared(sqlite3 *db, const struct way *way, const struct turns *turns,
                        const struct rows rows[2])
{
	const double before = turns->before.mean;
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(
		db, "INSERT INTO compared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &row, NULL);

	sqlite3_bind_text(row, 1, way->sql, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 2, way->pragma, -1, SQLITE_STATIC);
	sqlite3_bind_double(row, 3, before);
	sqlite3_bind_double(row, 5, turns->after.mean);
	sqlite3_bind_double(row, 7, -turns->saved.mean / before);
	if (turns->saved.count > 1) {
		sqlite3_bind_double(row, 4, sums_error(&turns->before));
		sqlite3_bind_double(row, 6, sums_error(&turns->after));
		sqlite3_bind_double(row, 8, sums_error(&turns->saved) / before);
	}
	sqlite3_bind_text(row, 9, turns_verdict(turns), -1, SQLITE_STATIC);
	sqlite3_bind_int64(row, 10, turns->saved.count);
	sqlite3_bind_int(row, 11, turns->is_cut);
	if (rows[1].is_whole && !rows[1].is_write)
		sqlite3_bind_int64(row, 12, rows[1].count);
	if (rows[0].is_whole && rows[1].is_whole && !rows[0].is_write && !rows[1].is_write)
		sqlite3_bind_int(row, 13,
		                 rows[0].count != rows[1].count || rows[0].sum != rows[1].sum ? 0
		                 : rows[0].chain == rows[1].chain                             ? 1
		                                                                              : 2);
	if (!code && sqlite3_step(row) != SQLITE_DONE)
		code = sqlite3_errcode(db);
	sqlite3_finalize(row);
	return code ? complain("analyze: %s", sqlite3_errmsg(db)) : COMMAND_FINE;
}

static int compare(sqlite3 *db, const struct way *first, struct way *other, struct connection *connection,
                   const char *given, const char *copy, int64_t ns)
{
	const struct turns_limit limit = { ns, ns / 2, RUNS_MIN, TURNS_ENOUGH };
	struct connection second;
	struct rows rows[2];
	struct turns turns;
	int result = COMMAND_FAILED;

	if (!way_open(other, &second, given, copy))
		return COMMAND_FAILED;
	const struct side sides[2] = { { connection, prepare, first }, { &second, prepare, other } };

	if (!read_rows(first, connection, ns / 2, &rows[0], NULL))
		complain("analyze: %s", connection->error);
	else if (!read_whole(other, &second, ns / 2, &rows[1]) || !turns_take(&turns, sides, 1, &limit))
		complain("analyze: %s: %s", other->pragma ? other->pragma : other->sql, second.error);
	else
		result = put_compared(db, other, &turns, rows);
	connection_close(&second);
	return result;
}

static int compare_all(sqlite3 *db, const struct way *first, struct connection *connection, const char *given,
                       const char *copy, int64_t ns)
{
	int result = run_sql(db, sql_advise_compared, NULL, &(struct output){ .table.is_bare = true });

	for (size_t i = 0; !result && i < others.count; i++) {
		progress_begin("comparing");
		result = compare(db, first, &others.items[i], connection, given, copy,
		                 ns / (int64_t)others.count);
	}
	progress_end();
	if (!result && output_is_text(format_name))
		return run_sql(db, sql_advise_compared_table, NULL,
		               &(struct output){ .table = { .hides_empty = true, .folds_last = 1 } });
	return result ? result
	              : run_sql(db, "SELECT * FROM compared", NULL,
	                        &(struct output){ .format = output_format_find(format_name) });
}

/* --- the plan ------------------------------------------------------------ */

/* The time of a run that is not recorded, measured for about that long. */
static int print_time(const struct way *way, struct connection *connection, int64_t ns)
{
	const int64_t end = connection_clock_ns() + ns;
	struct sums sums = { 0 };
	sqlite3_stmt *statement = way_prepare(way, connection);
	int code = statement ? SQLITE_DONE : SQLITE_ERROR;

	while (code == SQLITE_DONE && sums.count < RUNS_MAX &&
	       (sums.count < RUNS_MIN || sums_error(&sums) > TURNS_ENOUGH * sums.mean)) {
		double time = 0;

		code = connection_time(connection, statement, ns + RUN_SLOWER * way->run_ns, &time, NULL);
		sums_add(&sums, time);
		if (connection_clock_ns() > end)
			break;
	}
	sqlite3_finalize(statement);
	if (code != SQLITE_DONE)
		return complain("analyze: %s", connection->error);
	const int unit = sums.mean >= 1e9 ? 0 : sums.mean >= 1e6 ? 1 : 2;
	static const char *const units[] = { "s", "ms", "us" };
	static const double scales[] = { 1e9, 1e6, 1e3 };

	printf("%.3g %s", sums.mean / scales[unit], units[unit]);
	if (sums.count > 1)
		printf(" ± %.1f %%", 100 * sums_error(&sums) / sums.mean);
	printf(" of CPU time a run (%lld run%s, SQLite %s)\n", (long long)sums.count,
	       sums.count == 1 ? "" : "s", sqlite3_libversion());
	return COMMAND_FINE;
}

static int print_plan(const struct way *way, const struct private_copies *copies, int number, int64_t ns)
{
	char *path = text_format("%s/%d.trace", copies->folder, number);
	double error = 0;
	sqlite3 *trace;
	int result;

	progress_begin("measuring the plan");
	trace = path ? node_times_measure(way, copies->paths[0], path, way->run_ns, ns, &error) : NULL;
	progress_end();
	free(path);
	if (!trace)
		return COMMAND_FAILED;
	if (output_is_text(format_name)) {
		char *title = way->pragma ? text_format("PRAGMA %s", way->pragma) : NULL;

		result = node_times_print(trace, title, &way->counts);
		if (!result && error > NODE_TIMES_ERROR)
			printf("the error of a node that takes 1 %% or more is up to %.0f %% of its time: "
			       "--for TIME gives more\n",
			       100 * error);
		free(title);
	} else {
		result = node_times_print_rows(trace, &way->counts, format_name);
	}
	trace_file_close(trace);
	return result;
}

static int print_plans(const struct way *first, const struct private_copies *copies, int64_t ns)
{
	const int64_t each = ns / (1 + (int64_t)others.count);
	int result = print_plan(first, copies, 0, each);

	for (size_t i = 0; !result && i < others.count; i++)
		result = print_plan(&others.items[i], copies, 1 + (int)i, each);
	return result;
}

/* Whether another SQLite would plan otherwise, and where the planner was wrong, what ANALYZE would change.
 * ANALYZE changes the copy, so nothing is measured afterwards but its effect. */
static int print_choices(const struct way *way, const char *given, const char *copy, int64_t ns)
{
	struct connection connection;
	bool is_changed;
	int result = COMMAND_FINE;

	if (!way_open(way, &connection, given, copy))
		return COMMAND_FAILED;
	host_plan_print(way, &connection, copy, host);
	estimates_explain(way, &connection, ns, &is_changed);
	if (is_changed)
		result = print_time(way, &connection, ns);
	connection_close(&connection);
	return result;
}

/* --- the command ------------------------------------------------------------ */

static int measure(struct way *first, const struct private_copies *copies, const char *given, int64_t ns)
{
	struct connection connection;
	struct rows rows;
	sqlite3 *db = NULL;
	int result = COMMAND_FAILED;

	if (!way_open(first, &connection, given, copies->paths[0]))
		return COMMAND_FAILED;
	if (!read_whole(first, &connection, ns / 2, &rows))
		complain("analyze: %s", connection.error);
	else if (!others.count)
		result = output_is_text(format_name) ? print_time(first, &connection, ns / 4) : COMMAND_FINE;
	else if (!sqlite3_open(":memory:", &db) && !words_add(db))
		result = compare_all(db, first, &connection, given, copies->paths[0], ns / 2);
	sqlite3_close(db);
	connection_close(&connection);
	if (!result && (!others.count || output_is_text(format_name)))
		result = print_plans(first, copies, others.count ? ns / 2 : ns * 3 / 4);
	if (!result && !others.count && output_is_text(format_name))
		result = print_choices(first, given, copies->paths[0], ns / 4);
	return result;
}

static int run(int argc, char **argv)
{
	struct way first = { .sql = argv[1], .values = values.items, .values_count = values.count };
	struct private_copies copies;
	int64_t ns = TIME_DEFAULT;
	int result;

	(void)argc;
	if (for_time && (!moment_parse_duration(for_time, &ns) || ns < LIMIT_LEAST_NS)) {
		complain("analyze: --for %s; expected a time of at least 1s, such as 30s", for_time);
		return COMMAND_MISUSED;
	}
	for (size_t i = 0; i < others.count; i++) {
		struct way *other = &others.items[i];

		other->sql = other->sql ? other->sql : first.sql;
		other->values = values.items;
		other->values_count = values.count;
	}
	result = private_copies_make("analyze", argv[0], 1, live, &copies);
	if (!result) {
		limits_set("analyze", copies.bytes, ns);
		result = measure(&first, &copies, argv[0], ns);
		private_copies_remove(&copies);
	}
	vector_free(&first.counts);
	for (size_t i = 0; i < others.count; i++)
		vector_free(&others.items[i].counts);
	vector_free(&values);
	vector_free(&others);
	return result;
}

const struct command command_analyze = {
	.name = "analyze",
	.arguments = "DATABASE STATEMENT [OPTION]...",
	.summary = "Runs a statement on a copy, and shows its plan with measured times",
	.details =
		"Runs the statement repeatedly on a private copy of the database, until the standard error "
		"of each node of the plan that takes 1 % of the time or more is below 5 % of the node's "
		"time. Prints the CPU time of a run, and the plan (see plan) with wall times, and with the "
		"loops "
		"and rows of a run, which SQLite counts exactly.\n\n"
		"`estimated` are the rows that SQLite's planner expected of each start of a loop. If all "
		"starts "
		"together had 10 times as many rows, or as few, the loop is marked with BAD ESTIMATE. Then "
		"ANALYZE "
		"runs on the copy, and analyze prints the new estimate, or the new plan and its time. Fewer "
		"rows are "
		"not marked if the statement has a LIMIT, because the loop may have ended early.\n\n"
		"--against and --pragma are other ways to run the statement. Each is compared with the "
		"first. Both run alternately, so a disturbance affects them equally. `difference` is the "
		"difference of the CPU time, with one standard error. The verdict is `faster` or `slower` "
		"if the difference is at least 1 % and three standard errors, else `no difference`. `OTHER "
		"ROWS` means that the two do not return the same.\n\n"
		"The database, its log and its journal are copied as bytes into a folder in TMPDIR, which "
		"is removed at the end. Nothing next to the database is written, created or locked. If a "
		"process has the database open, analyze refuses, unless --live is given. Writes are rolled "
		"back after each run, and measured without their commit. All pages are in the cache of the "
		"kernel; waits for a disk are not in these times.\n\n"
		"analyze uses queryprof's own SQLite, which may plan differently from the program's. It asks "
		"the "
		"system's library, or the library of --host, for its plan, or takes the plan from a "
		"recording, and "
		"prints it if it has other loops, indexes or sorts. If no library can be asked, it is not "
		"known. The "
		"statement cannot attach a database, change the schema or a setting, or use functions and "
		"extensions of the program.",
	.examples = "  queryprof analyze app.db 'SELECT * FROM orders WHERE id = ?' --param 7\n"
		    "  queryprof analyze app.db 'SELECT id FROM t' --pragma cache_size=-65536\n",
	.options = options,
	.arguments_min = 2,
	.arguments_max = 2,
	.take = take,
	.run = run,
};
