/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/node_times.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/advise/limits.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/read/plan_tree.h"
#include "sql_advise_nodes.h"
#include "sql_advise_statement.h"
#include "sql_plan_nodes.h"

/* Timers of wall time are more exact than those of CPU time, which expire at the kernel's ticks. */
#define PERIOD "200us"
#define FIRST_NS INT64_C(1000000000)

/* --- the process that runs the statement ----------------------------------------------------------- */

static sqlite3 *running;

/* At first the statement ends as interrupted, without a progress handler, because queryprof does not read
 * plans on a connection with one. */
static void interrupt(int signal)
{
	(void)signal;
	if (!running)
		_exit(COMMAND_FAILED);
	sqlite3_interrupt(running);
	running = NULL;
	alarm(30);
}

/* The authorizer has seen the statement, and no one else can change the copy's schema. Without the
 * authorizer, the plan can be read. */
static bool run_for(const struct way *way, struct connection *connection, int64_t ns)
{
	sqlite3_stmt *statement = way_prepare(way, connection);
	bool fine = statement != NULL;
	int64_t end_ns;

	sqlite3_finalize(statement);
	sqlite3_set_authorizer(connection->db, NULL, NULL);
	sqlite3_progress_handler(connection->db, 0, NULL, NULL);
	statement = fine ? way_prepare(way, connection) : NULL;
	fine = statement != NULL;
	running = connection->db;
	end_ns = connection_clock_ns() + ns;
	while (fine && running && connection_clock_ns() < end_ns) {
		double run_ns;
		const int code = connection_time(connection, statement, end_ns, &run_ns, NULL);

		fine = code == SQLITE_DONE || code == SQLITE_INTERRUPT;
	}
	sqlite3_finalize(statement);
	return fine;
}

/* Arguments: COPY NS SQL PRAGMA [VALUE]...; PRAGMA "": none. */
int node_times_run(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = interrupt };
	struct connection connection;
	int result = COMMAND_FAILED;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 4)
		return COMMAND_MISUSED;
	const int64_t ns = strtoll(argv[1], NULL, 10);
	const struct way way = {
		argv[2], *argv[3] ? argv[3] : NULL, (const char *const *)argv + 4, (size_t)argc - 4, ns, { 0 }
	};

	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned)(2 * ns / 1000000000 + 2)); /* a run may still begin at the end */
	if (!way_open(&way, &connection, argv[0], argv[0]))
		return COMMAND_FAILED;
	if (run_for(&way, &connection, ns))
		result = COMMAND_FINE;
	else
		complain("analyze: %s", connection.error);
	connection_close(&connection);
	return result;
}

/* --- recording it ------------------------------------------------------------------------------------ */

static bool run_process(char **words)
{
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	int status = 0;

	fflush(stdout);
	const pid_t child = nothing < 0 ? -1 : fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* record ends with its program, and removes what it made */
		if (dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0)
			_exit(COMMAND_FAILED);
		execv(words[0], words);
		_exit(COMMAND_FAILED);
	}
	if (nothing >= 0)
		close(nothing);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool record(const struct way *way, const char *copy, const char *trace, int64_t ns)
{
	static const char *const options[] = {
		"record", "--quiet", "--no-symbols", "--append",
		"--cpu",  "0",       "--off-cpu",    "0",
		"--real", PERIOD,    "--setting",    "query_profiler_max_overhead_percent=0",
		"-o",     NULL
	};
	VECTOR(char *) words = { 0 };
	char self[PATH_MAX], time[24];
	const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool fine = size > 0;

	self[fine ? size : 0] = 0;
	snprintf(time, sizeof(time), "%lld", (long long)ns);
	fine = fine && vector_push(&words, self);
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		fine = fine && vector_push(&words, (char *)(options[i] ? options[i] : trace));
	const char *const tail[] = {
		"--", self, "--run-statement", copy, time, way->sql, way->pragma ? way->pragma : ""
	};

	for (size_t i = 0; i < sizeof(tail) / sizeof(*tail); i++)
		fine = fine && vector_push(&words, (char *)tail[i]);
	for (size_t i = 0; i < way->values_count; i++)
		fine = fine && vector_push(&words, (char *)way->values[i]);
	fine = fine && vector_push(&words, NULL);
	fine = fine && run_process(words.items);
	vector_free(&words);
	return fine;
}

/* --- reading it ---------------------------------------------------------------------------------------- */

/* malloc'ed; NULL: the statement has no samples. */
static char *find_statement(const char *trace, const char *sql)
{
	sqlite3 *db = trace_file_open_tables(trace);
	sqlite3_stmt *row = NULL;
	char *id = NULL;

	if (!db)
		return NULL;
	sqlite3_prepare_v2(db, sql_advise_statement, -1, &row, NULL);
	sqlite3_bind_text(row, 1, sql, -1, SQLITE_STATIC);
	if (row && sqlite3_step(row) == SQLITE_ROW)
		id = strdup((const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
	trace_file_close(db);
	return id;
}

/* The largest error of a node's time, as a part of that time. */
static double largest_error(sqlite3 *trace)
{
	enum { NODE = 3, NS = 6, SQUARE = 7 };
	const struct sql_parameter parameters[] = { { ":trace_type", "Real" },
		                                    { ":limit", "1" },
		                                    { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	double all = 0, largest = 0;

	sqlite3_prepare_v2(trace, sql_plan_nodes, -1, &rows, NULL);
	if (rows)
		run_sql_bind(rows, parameters);
	while (rows && sqlite3_step(rows) == SQLITE_ROW)
		all += sqlite3_column_double(rows, NS);
	if (rows)
		sqlite3_reset(rows);
	while (rows && sqlite3_step(rows) == SQLITE_ROW) {
		const double ns = sqlite3_column_double(rows, NS);

		if (sqlite3_column_int64(rows, NODE) > 0 && ns > NODE_TIMES_LEAST * all)
			largest = fmax(largest, sqrt(sqlite3_column_double(rows, SQUARE)) / ns);
	}
	sqlite3_finalize(rows);
	return all > 0 ? largest : INFINITY;
}

static void complain_of_none(sqlite3 *trace)
{
	sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(trace, "SELECT reason FROM temp.selected_without_plan", -1, &row, NULL) ==
	            SQLITE_OK &&
	    sqlite3_step(row) == SQLITE_ROW)
		complain("analyze: no plan: %s", run_sql_text(row, 0));
	else
		complain("analyze: no plan: the statement had no sample; --for TIME gives more");
	sqlite3_finalize(row);
}

static sqlite3 *open_trace(const struct way *way, const char *path)
{
	struct selection one = { 0 };
	char *id = find_statement(path, way->sql);
	sqlite3 *trace;

	if (!id) {
		complain("analyze: no plan: the statement had no sample");
		return NULL;
	}
	one.statement = id;
	trace = selection_open(path, &one);
	free(id);
	return trace;
}

sqlite3 *node_times_measure(const struct way *way, const char *copy, const char *path, int64_t run_ns,
                            int64_t ns, double *error)
{
	const int64_t end = connection_clock_ns() + ns;
	int64_t part = run_ns > FIRST_NS ? run_ns : ns < FIRST_NS ? ns : FIRST_NS, used = 0;

	for (;;) {
		sqlite3 *trace = record(way, copy, path, part) ? open_trace(way, path) : NULL;
		const int64_t left = end - connection_clock_ns();

		if (!trace)
			return NULL;
		used += part;
		*error = largest_error(trace);
		if (isinf(*error) && (left < run_ns || left < FIRST_NS / 4)) {
			complain_of_none(trace);
			trace_file_close(trace);
			return NULL;
		}
		if (*error <= NODE_TIMES_ERROR || left < run_ns || left < FIRST_NS / 4)
			return trace;
		/* Errors fall with the square root of the time. */
		const double times = fmin(*error, 100) / NODE_TIMES_ERROR,
			     wanted = (double)used * (1.1 * times * times - 1);

		part = wanted < (double)left ? (int64_t)wanted : left;
		part = part < FIRST_NS / 4 ? FIRST_NS / 4 : part;
		trace_file_close(trace);
	}
}

int node_times_print(sqlite3 *trace, const char *title, const plan_counts *counts)
{
	struct shown_type type = shown_type_of("Real");
	const struct plan_print how = { .limit = "1", .title = title, .counts = counts };

	return shown_type_read(&type, trace) ? plan_tree_print(trace, &type, &how, NULL) : COMMAND_FAILED;
}

/* Loops, rows and estimate of a node, and the rows found, as a multiple of the estimated ones. */
static void bind_counts(sqlite3_stmt *to, int first, const plan_counts *counts, int64_t node)
{
	for (size_t i = 0; i < counts->count; i++) {
		const struct plan_count *count = &counts->items[i];
		const double factor = plan_count_factor(count->loops, count->rows, count->estimate);

		if (count->node != node)
			continue;
		sqlite3_bind_int64(to, first, count->loops);
		sqlite3_bind_int64(to, first + 1, count->rows);
		if (count->loops)
			sqlite3_bind_double(to, first + 2, (double)count->rows / (double)count->loops);
		if (count->estimate >= 0)
			sqlite3_bind_double(to, first + 3, count->estimate);
		if (factor != 0)
			sqlite3_bind_double(to, first + 4, factor > 0 ? factor : -1 / factor);
	}
}

int node_times_print_rows(sqlite3 *trace, const plan_counts *counts, const char *format_name)
{
	enum { RUNS = 1, NODE = 3, PARENT, DETAIL, NS, SQUARE };
	const struct sql_parameter parameters[] = { { ":trace_type", "Real" },
		                                    { ":limit", "1" },
		                                    { NULL, NULL } };
	sqlite3_stmt *from = NULL, *to = NULL;
	sqlite3 *db = NULL;
	int code = sqlite3_open(":memory:", &db), result = COMMAND_FAILED;

	if (!code)
		code = sqlite3_exec(db, sql_advise_nodes, NULL, NULL, NULL);
	if (!code)
		code = sqlite3_prepare_v2(db, "INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		                          -1, &to, NULL);
	if (!code)
		code = sqlite3_prepare_v2(trace, sql_plan_nodes, -1, &from, NULL);
	if (from)
		run_sql_bind(from, parameters);
	while (!code && sqlite3_step(from) == SQLITE_ROW) {
		const double runs = sqlite3_column_double(from, RUNS);

		sqlite3_bind_int64(to, 1, sqlite3_column_int64(from, NODE));
		sqlite3_bind_int64(to, 2, sqlite3_column_int64(from, PARENT));
		sqlite3_bind_value(to, 3, sqlite3_column_value(from, DETAIL));
		sqlite3_bind_double(to, 4, sqlite3_column_double(from, NS) / runs);
		sqlite3_bind_double(to, 5, sqrt(sqlite3_column_double(from, SQUARE)) / runs);
		bind_counts(to, 6, counts, sqlite3_column_int64(from, NODE));
		sqlite3_bind_double(to, 11, runs);
		sqlite3_step(to);
		code = sqlite3_reset(to);
		sqlite3_clear_bindings(to);
	}
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	if (!code)
		result = run_sql(db, "SELECT * FROM nodes", NULL,
		                 &(struct output){ .format = output_format_find(format_name) });
	sqlite3_close(db);
	return result;
}
