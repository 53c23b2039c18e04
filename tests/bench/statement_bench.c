/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's cost to a host per statement and per row. The same loops run in a process that has not loaded
 * the library, in one that has, with both timers off and on, and in one that is recorded with both timers
 * off.
 *
 * The first sampled query starts a thread, which writes the trace file. In a program that was single-threaded
 * before, glibc's mutexes then permanently use atomic instructions. "with a thread" is the same program with
 * an idle thread of its own; it is the baseline of the lines below it.
 *
 *   tools/bench --all statement
 *
 * The library and the command are arguments, so the same program can measure another build.
 *
 * Timers that are turned off stop at their next signals, which find no query, and the caches still hold
 * earlier writes. This costs some 50 us once, which would be a twentieth of a short round. So each mode has a
 * round of all loops that does not count.
 *
 * Two equal processes differ by some percent, depending on their memory's addresses, so each is started many
 * times. Within one start the loops alternate, and the least of many short rounds counts, because other work
 * on the machine only ever adds time. The figure is the median of the ratios over all starts, with the
 * quartiles. "not loaded, again" shows the difference between two equal processes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/must.h"

#define STARTS 5
#define ROUNDS 15
static double tiny_statements(sqlite3 *db)
{
	enum { N = 20000 };
	sqlite3_stmt *stmt;
	uint64_t start;

	must(NULL, sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL), "prepare");
	start = cpu_ns();
	for (int i = 0; i < N; i++) {
		sqlite3_step(stmt);
		sqlite3_reset(stmt);
	}
	start = cpu_ns() - start;
	sqlite3_finalize(stmt);
	return (double)start / N;
}

static double rows(sqlite3 *db)
{
	enum { N = 30000 };
	sqlite3_stmt *stmt;
	uint64_t start;

	must(NULL, sqlite3_prepare_v2(db, "SELECT a, b FROM t LIMIT 30000", -1, &stmt, NULL), "prepare");
	start = cpu_ns();
	for (int i = 0; sqlite3_step(stmt) == SQLITE_ROW; i++)
		sqlite3_column_int64(stmt, 1);
	start = cpu_ns() - start;
	sqlite3_finalize(stmt);
	return (double)start / N;
}

/* The loop of a program with a cache of statements. */
static double statements_in_turns(sqlite3 *db)
{
	enum { N = 20000, STATEMENTS = 5 };
	sqlite3_stmt *stmts[STATEMENTS];
	char sql[32];
	uint64_t start;

	for (int i = 0; i < STATEMENTS; i++) {
		snprintf(sql, sizeof(sql), "SELECT %d", i);
		must(NULL, sqlite3_prepare_v2(db, sql, -1, &stmts[i], NULL), "prepare");
	}
	start = cpu_ns();
	for (int i = 0; i < N; i++) {
		sqlite3_step(stmts[i % STATEMENTS]);
		sqlite3_reset(stmts[i % STATEMENTS]);
	}
	start = cpu_ns() - start;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(stmts[i]);
	return (double)start / N;
}

/* The loop of a program without one. */
static double prepared_each_time(sqlite3 *db)
{
	enum { N = 4000 };
	uint64_t start = cpu_ns();

	for (int i = 0; i < N; i++) {
		sqlite3_stmt *stmt;

		must(NULL, sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL), "prepare");
		sqlite3_step(stmt);
		sqlite3_finalize(stmt);
	}
	return (double)(cpu_ns() - start) / N;
}

#define LOOPS 4
static const struct {
	char command;
	const char *name;
	double (*run)(sqlite3 *);
} loops[LOOPS] = {
	{ 't', "SELECT 1, step and reset", tiny_statements },
	{ 'r', "row of a table scan", rows },
	{ 'a', "SELECT 1, five statements in turns", statements_in_turns },
	{ 'p', "SELECT 1, prepared each time", prepared_each_time },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

enum { PLAIN, AGAIN, OFF, RECORDED, THREAD, TURNED_OFF, ON_10MS, ON_1MS, MODES };
enum { NOT_LOADED, NOT_LOADED_AGAIN, LOADED_OFF, UNDER_RECORD, WITH_THREAD, LOADED, SERVERS };
static const struct {
	const char *name, *settings;
	int server;
} modes[MODES] = {
	{ "not loaded", NULL, NOT_LOADED },
	{ "not loaded, again", NULL, NOT_LOADED_AGAIN },
	{ "loaded, timers off", NULL, LOADED_OFF },
	{ "recorded, timers off", NULL, UNDER_RECORD },
	{ "with a thread", NULL, WITH_THREAD },
	{ "timers turned off",
	  "PRAGMA query_profiler_cpu_time_period_ns=0; PRAGMA query_profiler_real_time_period_ns=0", LOADED },
	{ "CPU period 10 ms",
	  "PRAGMA query_profiler_cpu_time_period_ns=10000000; PRAGMA query_profiler_real_time_period_ns=0",
	  LOADED },
	{ "both periods 1 ms",
	  "PRAGMA query_profiler_cpu_time_period_ns=1000000; PRAGMA "
	  "query_profiler_real_time_period_ns=1000000",
	  LOADED },
};

/* The hooks affect the whole process. So a process without the library measures the cost before them, one
 * round at a time. */
static void *wait_for_ever(void *context)
{
	for (;;)
		pause();
	return context;
}

/* `gap`: bytes before everything else in the heap. The place of SQLite's structs within a page changes a
 * loop's time by up to a fifth, and depends on the length of the library's path. */
static int serve(int gap, const char *library)
{
	pthread_t thread;
	sqlite3 *db;
	void *volatile before = malloc((size_t)gap);

	(void)before;
	must(NULL, sqlite3_open(":memory:", &db), "open");
	must(NULL,
	     sqlite3_exec(
		     db,
		     "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
		     "WHERE x < 30000) INSERT INTO t SELECT x, x * 2 FROM c",
		     NULL, NULL, NULL),
	     "fill");
	if (library && !*library) {
		pthread_create(&thread, NULL, wait_for_ever, NULL);
	} else if (library) {
		char *error = NULL;

		must(NULL, sqlite3_enable_load_extension(db, 1), "enable");
		if (sqlite3_load_extension(db, library, "sqlite3_queryprof_init", &error)) {
			fprintf(stderr, "%s\n", error);
			return 1;
		}
	}
	for (int command; (command = getchar()) != EOF;) {
		if (command >= '0' && command < '0' + MODES && modes[command - '0'].settings)
			must(NULL, sqlite3_exec(db, modes[command - '0'].settings, NULL, NULL, NULL),
			     "settings");
		for (int i = 0; i < LOOPS; i++)
			if (command == loops[i].command)
				printf("%f\n", loops[i].run(db)), fflush(stdout);
	}
	return 0;
}

static char folder[] = "/tmp/statement-bench-XXXXXX", trace[64];

struct server {
	pid_t process;
	FILE *in, *out;
};

/* `argv`: the program, the library and the command. */
static struct server start(char **argv, int number, int which)
{
	char gap[16];
	const char *const program = argv[0], *const library = argv[1], *const command = argv[2];
	const char *const arguments[SERVERS][16] = {
		[NOT_LOADED] = { program, "serve", gap },
		[NOT_LOADED_AGAIN] = { program, "serve", gap },
		[WITH_THREAD] = { program, "serve", gap, "" },
		[LOADED_OFF] = { program, "serve", gap, library },
		[LOADED] = { program, "serve", gap, library },
		[UNDER_RECORD] = { command, "record", "--quiet", "-o", trace, "--cpu", "0", "--real", "0",
		                   "--off-cpu", "0", program, "serve", gap },
	};
	int in[2], out[2];
	struct server server;

	snprintf(gap, sizeof(gap), "%d", 1 + number * 4096 / STARTS);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || (server.process = fork()) < 0)
		exit(1);
	if (!server.process) {
		if (which == LOADED_OFF)
			setenv("QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS", "0", 1);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execv(arguments[which][0], (char *const *)arguments[which]);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	server.in = fdopen(in[1], "w");
	server.out = fdopen(out[0], "r");
	return server;
}

static double ask(struct server *server, int what)
{
	double value = 0;

	fprintf(server->in, "%c", what);
	fflush(server->in);
	if (fscanf(server->out, "%lf", &value) != 1)
		exit(1);
	return value;
}

static double least[LOOPS][MODES][STARTS];

static void measure(char **argv, int number)
{
	struct server servers[SERVERS];

	for (int i = 0; i < SERVERS; i++)
		servers[i] = start(argv, number, i);
	for (int round = 0; round < ROUNDS; round++) {
		for (int mode = 0; mode < MODES; mode++) {
			struct server *server = &servers[modes[mode].server];

			fprintf(server->in, "%d", mode);
			for (int turn = 0; turn < 2 * LOOPS; turn++) {
				double value = ask(server, loops[turn % LOOPS].command),
				       *known = &least[turn % LOOPS][mode][number];

				if (turn >= LOOPS && (!round || value < *known))
					*known = value;
			}
		}
	}
	for (int i = 0; i < SERVERS; i++) {
		fclose(servers[i].in);
		fclose(servers[i].out);
		waitpid(servers[i].process, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return serve(argc > 2 ? atoi(argv[2]) : 1, argc > 3 ? argv[3] : NULL);
	if (argc != 3) {
		fprintf(stderr, "usage: statement_bench LIBRARY COMMAND\n");
		return 2;
	}
	if (!mkdtemp(folder))
		return 1;
	snprintf(trace, sizeof(trace), "%s/trace", folder);
	for (int i = 0; i < STARTS; i++)
		measure(argv, i);
	unlink(trace);
	rmdir(folder);
	for (int loop = 0; loop < LOOPS; loop++) {
		printf("%s (medians of %d starts, quartiles)\n", loops[loop].name, STARTS);
		for (int mode = 0; mode < MODES; mode++) {
			double ratios[STARTS], ns[STARTS];

			for (int i = 0; i < STARTS; i++) {
				ns[i] = least[loop][mode][i];
				ratios[i] = ns[i] / least[loop][PLAIN][i];
			}
			qsort(ns, STARTS, sizeof(*ns), compare);
			qsort(ratios, STARTS, sizeof(*ratios), compare);
			printf("  %-22s %8.1f ns  %.3f x  (%.3f to %.3f)\n", modes[mode].name, ns[STARTS / 2],
			       ratios[STARTS / 2], ratios[STARTS / 4], ratios[STARTS * 3 / 4]);
		}
	}
	return 0;
}
