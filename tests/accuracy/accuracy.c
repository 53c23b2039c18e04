/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do samples agree with clocks and counters? Prints figures with their standard errors; bounds decide whether
 * they pass.
 *
 *   accuracy [--seconds 10] [--threads 1,8,64] [--periods 0.2,1,3,4,10,25] [--loads quiet,contended]
 *     [--parts sums,splits]
 *
 * sums: each thread computes in queries for that many seconds. The test compares the sums of their CPU
 * samples with the thread's CPU clock at their ends. They must agree within 1 % or three standard errors,
 * whichever is more. The ledger must be exact: no sample is lost, each signal has its outcome, and trace_log
 * and query_log have the same sum.
 *
 * splits: two threads run three statements with known shares. Each statement divides its time in known parts
 * among three functions of this program. The shares of the samples must agree with the work done, within 1 %
 * of the whole or three and a half standard errors.
 *
 * `contended`: in addition, two computing processes for each processor.
 *
 * The kernel expires a CPU timer only in its tick. In the middle of a thread's life, a query's samples come
 * as late at the beginning as at the end, so sums have no bias. Either end may be off by a period, or by a
 * tick if a tick is longer. That is the theoretical error of a sum. Each thread divides its time into several
 * queries, one after the other. If their differences show a larger error, that error counts, because on a
 * busy machine a thread meets fewer ticks. A thread runs another query before the measured ones, so that its
 * timer is in the middle, too. The error of a share is the error of a draw at each tick, or the error that
 * the differences of PARTS parts show.
 *
 * By chance one figure of 370 is further away than three errors. Lines with such a figure are measured again,
 * and fail if they are wrong ROUNDS times. An inexact ledger fails immediately.
 */
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/clock.h"
#include "../lib/must.h"
#include "../lib/busy.h"
#include "../lib/options.h"
#include "../lib/seed.h"
#include "../lib/spin.h"

#define ROUNDS 3
#define SUM_BOUND 0.01
#define SUM_ERRORS 3
#define SHARE_BOUND 0.01
#define SHARE_ERRORS 3.5
#define TICK_NS 4e6
#define BUSY_PER_PROCESSOR 2
#define THREADS_MAX 256
#define SUMS_LEAST 16 /* queries whose sums are compared, of all threads together */

static struct {
	double seconds;
	const char *threads, *periods_ms, *loads, *parts;
} options = { 10, "1,8,64", "0.2,1,3,4,10,25", "quiet,contended", "sums,splits" };

static sqlite3 *monitor;
static uint64_t seed;

static void pause_s(double seconds)
{
	struct timespec time = { (time_t)seconds, (long)((seconds - floor(seconds)) * 1e9) };

	while (nanosleep(&time, &time))
		;
}

static void exec(sqlite3 *db, const char *sql)
{
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
	return stmt;
}

/* --- the program's functions ---------------------------------------------------------------- */

enum { FUNCTIONS = 3 };

static volatile int last_function;

/* Assigns `last_function` after the call, so that the function keeps a frame and differs from the other
 * ones. */
#define FUNCTION(name, number)                                                                               \
	__attribute__((noinline)) void name(uint64_t rounds);                                                \
	__attribute__((noinline)) void name(uint64_t rounds)                                                 \
	{                                                                                                    \
		spin_rounds(rounds);                                                                         \
		last_function = number;                                                                      \
	}
FUNCTION(work_first, 0)
FUNCTION(work_second, 1)
FUNCTION(work_third, 2)

static void (*const functions[FUNCTIONS])(uint64_t) = { work_first, work_second, work_third };
static const char *const function_names[FUNCTIONS] = { "work_first", "work_second", "work_third" };

static void sql_work(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	functions[sqlite3_value_int(values[0])]((uint64_t)sqlite3_value_int64(values[1]));
	sqlite3_result_int(context, 0);
}

/* A query of `sums` waits for this number. */
static atomic_int turn;

static void sql_going(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sqlite3_result_int(context, atomic_load(&turn) < sqlite3_value_int(values[0]));
}

static sqlite3 *open_connection(void)
{
	sqlite3 *db = NULL;

	must(NULL, sqlite3_open(":memory:", &db), "open");
	must_load(db, QUERYPROF_LIBRARY);
	/* Each run gets a row, even if its thread got little CPU time. */
	exec(db, "PRAGMA log_queries_min_query_duration_ns = 0");
	must(db, sqlite3_create_function(db, "work", 2, SQLITE_UTF8, NULL, sql_work, NULL, NULL), "work");
	must(db, sqlite3_create_function(db, "going", 1, SQLITE_UTF8, NULL, sql_going, NULL, NULL), "going");
	return db;
}

static void set_period(sqlite3 *db, double period_ns)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "PRAGMA query_profiler_cpu_time_period_ns = %.0f", period_ns);
	exec(db, sql);
}

/* --- the ledger -------------------------------------------------------------------------------- */

static const char *const outcomes = "'samples', 'samples_dropped', 'signals_idle', 'signals_asked', "
				    "'signals_late', 'signals_foreign', 'signals_reentered'";

static int64_t number_of(const char *sql)
{
	sqlite3_stmt *stmt = prepare(monitor, sql);
	int64_t number;

	must(monitor, sqlite3_step(stmt), sql);
	number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

/* Call it while no thread is in a query. Signals of idle threads still come, so a single reading may see a
 * signal between its two counters. */
static bool is_ledger_exact(void)
{
	char sql[640];
	int64_t open = 1, lost;

	snprintf(sql, sizeof(sql),
	         "SELECT sum(CASE WHEN metric IN ('query_profiler_runs', 'samples_taken') THEN value "
	         "WHEN metric IN (%s) THEN -value END) FROM system.metrics",
	         outcomes);
	for (int i = 0; i < 50 && open; i++)
		open = number_of(sql);
	lost = number_of("SELECT sum(value) FROM system.metrics WHERE metric IN ('samples_dropped', "
	                 "'ring_dropped', 'store_lost', 'queries_lost', 'timers_failed')");
	if (open || lost)
		printf("ledger: %lld signals without an outcome, %lld losses\n", (long long)open,
		       (long long)lost);
	return !open && !lost;
}

/* --- sums ---------------------------------------------------------------------------------------- */

static struct measured {
	pthread_t thread;
	int cell, number, queries;
	double period_ns, clock_ns[SUMS_LEAST], sampled_ns[SUMS_LEAST];
} measured[THREADS_MAX];

static atomic_int ready;

/* SQLite's interpreter works until `turn` is reached. */
static void run_until(sqlite3 *db, int until, const char *id, double *clock_ns)
{
	sqlite3_stmt *stmt;
	char sql[128];

	snprintf(sql, sizeof(sql), "PRAGMA query_id = '%s'", id);
	exec(db, sql);
	stmt = prepare(db, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE going(?)) "
	                   "SELECT sum(x * 7 % 13) FROM c");
	sqlite3_bind_int(stmt, 1, until);
	double start = (double)cpu_ns();
	must(db, sqlite3_step(stmt), "the query");
	*clock_ns = (double)cpu_ns() - start;
	sqlite3_finalize(stmt);
}

static void *compute(void *context)
{
	struct measured *self = context;
	sqlite3 *db = open_connection();
	double before_ns;
	char id[40];

	set_period(db, self->period_ns);
	atomic_fetch_add(&ready, 1);
	snprintf(id, sizeof(id), "before-%d-%d", self->cell, self->number);
	run_until(db, 1, id, &before_ns);
	for (int q = 0; q < self->queries; q++) {
		snprintf(id, sizeof(id), "sum-%d-%d", self->cell, self->number * SUMS_LEAST + q);
		run_until(db, 2 + q, id, &self->clock_ns[q]);
	}
	must(db, sqlite3_close(db), "close");
	return NULL;
}

/* Compares query_log with trace_log. */
static bool read_sums(int cell, int runs, double period_ns)
{
	char sql[400];
	sqlite3_stmt *stmt;
	bool equal = true;
	int rows = 0;

	snprintf(sql, sizeof(sql),
	         "SELECT substr(q.query_id, length('sum-%d-') + 1), q.weight_cpu, "
	         "(SELECT coalesce(sum(value), 0) FROM system.trace_log AS t WHERE t.query_id = q.query_id "
	         "AND "
	         "trace_type = 'CPU') FROM system.query_log AS q WHERE q.query_id LIKE 'sum-%d-%%'",
	         cell, cell);
	stmt = prepare(monitor, sql);
	for (; sqlite3_step(stmt) == SQLITE_ROW; rows++) {
		int number = sqlite3_column_int(stmt, 0);
		double sum = sqlite3_column_double(stmt, 2);

		measured[number / SUMS_LEAST].sampled_ns[number % SUMS_LEAST] = sum;
		equal &= sum == sqlite3_column_double(stmt, 1) * period_ns;
	}
	must(monitor, sqlite3_finalize(stmt), "query_log");
	if (rows != runs || !equal)
		printf("ledger: %d of %d runs in query_log, sums %s\n", rows, runs,
		       equal ? "equal" : "other than in trace_log");
	return rows == runs && equal;
}

static bool judge_sums(const char *load, int count, int queries, double period_ns)
{
	double sampled = 0, exact = 0, squares = 0, mean, end_ns = fmax(period_ns, TICK_NS);
	int runs = count * queries;

	for (int i = 0; i < runs; i++) {
		sampled += measured[i / queries].sampled_ns[i % queries];
		exact += measured[i / queries].clock_ns[i % queries];
	}
	mean = (sampled - exact) / runs;
	for (int i = 0; i < runs; i++)
		squares += pow(measured[i / queries].sampled_ns[i % queries] -
		                       measured[i / queries].clock_ns[i % queries] - mean,
		               2);
	/* Two ends count for each thread, and two for each query, because between two queries one gets the
	 * part that the other lacks. An end is evenly distributed over its length. */
	double error = sqrt(count * fmax(squares / (runs - 1), end_ns * end_ns / 6)) / exact;
	double off = fabs(sampled / exact - 1), bound = fmax(SUM_BOUND, SUM_ERRORS * error);
	printf("%-9s %3d threads %5.1f ms  %6.2f s  %.4f +- %.4f  1 +- %.3f%s\n", load, count,
	       period_ns / 1e6, exact / 1e9, sampled / exact, error, bound, off <= bound ? "" : "  *");
	fflush(stdout);
	return off <= bound;
}

static bool measure_sum(const char *load, int count, double period_ns, bool *ledger)
{
	static int cell;
	int queries = count < SUMS_LEAST ? (SUMS_LEAST + count - 1) / count : 1;

	cell++;
	atomic_store(&turn, 0);
	atomic_store(&ready, 0);
	for (int i = 0; i < count; i++) {
		measured[i] = (struct measured){
			.cell = cell, .number = i, .queries = queries, .period_ns = period_ns
		};
		if (pthread_create(&measured[i].thread, NULL, compute, &measured[i]))
			exit(2);
	}
	while (atomic_load(&ready) < count)
		pause_s(0.01);
	/* Some ticks for each thread. */
	pause_s(0.1 + 0.015 * count);
	for (int q = 0; q < queries; q++) {
		atomic_store(&turn, 1 + q);
		pause_s(options.seconds / queries);
	}
	atomic_store(&turn, 1 + queries);
	for (int i = 0; i < count; i++)
		pthread_join(measured[i].thread, NULL);
	*ledger &= read_sums(cell, count * queries, period_ns) && is_ledger_exact();
	return judge_sums(load, count, queries, period_ns);
}

/* --- splits -------------------------------------------------------------------------------------- */

enum { TEXTS = 3, PARTS = 20, WORKERS = 2 };

/* The queries of a text: how many of ten, their average duration, and the tenths of the functions. */
static const struct text {
	int often;
	double ns;
	int tenths[FUNCTIONS];
} texts[TEXTS] = { { 5, 1e6, { 6, 3, 1 } }, { 3, 0.7e6, { 1, 6, 3 } }, { 2, 1.9e6, { 3, 1, 6 } } };

struct split {
	pthread_t thread;
	int number;
	double rounds[PARTS][TEXTS][FUNCTIONS];
};

static double split_period_ns;
static int split_cell;

static void *divide(void *context)
{
	struct split *self = context;
	unsigned state = (unsigned)(seed + (uint64_t)self->number * 77 + (uint64_t)split_cell);
	sqlite3 *db = open_connection();

	set_period(db, split_period_ns);
	for (int part = 0; part < PARTS; part++) {
		sqlite3_stmt *stmts[TEXTS];
		for (int t = 0; t < TEXTS; t++) {
			char sql[200];
			snprintf(sql, sizeof(sql),
			         "SELECT work(0, ?1), work(1, ?2), work(2, ?3) AS split_%d_%d_%d", split_cell,
			         part, t);
			stmts[t] = prepare(db, sql);
		}
		/* Ends by the work done, because reading a clock would decide where the next tick falls. */
		for (double left = options.seconds * 1e9 / PARTS; left > 0;) {
			int which = rand_r(&state) % 10, t = which < 5 ? 0 : which < 8 ? 1 : 2;
			double ns = texts[t].ns * (0.5 + (double)rand_r(&state) / RAND_MAX);
			for (int f = 0; f < FUNCTIONS; f++) {
				double rounds = floor(ns * texts[t].tenths[f] / 10 * spin_rate);
				sqlite3_bind_int64(stmts[t], f + 1, (sqlite3_int64)rounds);
				self->rounds[part][t][f] += rounds;
			}
			must(db, sqlite3_step(stmts[t]), "work");
			must(db, sqlite3_reset(stmts[t]), "work");
			left -= ns;
		}
		for (int t = 0; t < TEXTS; t++)
			sqlite3_finalize(stmts[t]);
	}
	must(db, sqlite3_close(db), "close");
	return NULL;
}

/* By part: samples and work, of the item and of everything it belongs to. */
struct share {
	double sampled[PARTS], sampled_all[PARTS], done[PARTS], done_all[PARTS];
};

static bool judge_share(const char *load, const char *what, const struct share *share)
{
	double all = 0, sampled = 0, done = 0, done_all = 0, off[PARTS], mean = 0, squares = 0;

	for (int p = 0; p < PARTS; p++) {
		off[p] = share->sampled[p] -
		         (share->done_all[p] > 0 ? share->done[p] / share->done_all[p] * share->sampled_all[p]
		                                 : 0);
		mean += off[p] / PARTS;
		sampled += share->sampled[p];
		all += share->sampled_all[p];
		done += share->done[p];
		done_all += share->done_all[p];
	}
	for (int p = 0; p < PARTS; p++)
		squares += pow(off[p] - mean, 2);
	double truth = done / done_all, difference = sampled / all - truth;
	double by_ticks = truth * (1 - truth) * fmax(split_period_ns, TICK_NS) / all;
	double error = sqrt(fmax(squares * PARTS / (PARTS - 1) / (all * all), by_ticks));
	double bound = fmax(SHARE_BOUND, SHARE_ERRORS * error);
	bool good = all > 0 && fabs(difference) <= bound;
	printf("%-9s %-26s %5.1f ms  %.4f of %.4f  %+.4f +- %.4f  0 +- %.3f%s\n", load, what,
	       split_period_ns / 1e6, sampled / all, truth, difference, error, bound, good ? "" : "  *");
	fflush(stdout);
	return good;
}

static bool measure_splits(const char *load, double period_ns, bool *ledger)
{
	static struct split workers[WORKERS];
	static double seen[PARTS][TEXTS][FUNCTIONS + 1]; /* the last: in none of the functions */
	static struct share share;
	bool within = true;
	sqlite3_stmt *stmt;
	char sql[700], what[40];

	split_cell++;
	split_period_ns = period_ns;
	memset(workers, 0, sizeof(workers));
	memset(seen, 0, sizeof(seen));
	for (int w = 0; w < WORKERS; w++) {
		workers[w].number = w;
		if (pthread_create(&workers[w].thread, NULL, divide, &workers[w]))
			exit(2);
	}
	for (int w = 0; w < WORKERS; w++)
		pthread_join(workers[w].thread, NULL);

	snprintf(sql, sizeof(sql),
	         "SELECT substr(query, instr(query, 'split_')), "
	         "CASE WHEN symbols LIKE '%%\"%s\"%%' THEN 0 WHEN symbols LIKE '%%\"%s\"%%' THEN 1 "
	         "WHEN symbols LIKE '%%\"%s\"%%' THEN 2 ELSE 3 END, sum(value) "
	         "FROM system.trace_log JOIN system.query_log USING (query_id) "
	         "WHERE trace_type = 'CPU' AND query LIKE '%% AS split\\_%d\\_%%' ESCAPE '\\' GROUP BY 1, 2",
	         function_names[0], function_names[1], function_names[2], split_cell);
	stmt = prepare(monitor, sql);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		int cell, part, text;
		if (sscanf((const char *)sqlite3_column_text(stmt, 0), "split_%d_%d_%d", &cell, &part,
		           &text) == 3)
			seen[part][text][sqlite3_column_int(stmt, 1)] += sqlite3_column_double(stmt, 2);
	}
	must(monitor, sqlite3_finalize(stmt), "trace_log");
	*ledger &= is_ledger_exact();

	for (int t = 0; t < TEXTS; t++) {
		for (int f = -1; f < FUNCTIONS; f++) { /* -1: the statement's share of all */
			memset(&share, 0, sizeof(share));
			for (int p = 0; p < PARTS; p++)
				for (int w = 0; w < WORKERS; w++)
					for (int u = 0; u < TEXTS; u++)
						for (int g = 0; g < FUNCTIONS; g++) {
							double done = workers[w].rounds[p][u][g];
							double value = w == 0 ? seen[p][u][g] : 0;
							bool of_all = f < 0 || u == t;
							bool of_it = u == t && (f < 0 || g == f);
							share.done_all[p] += of_all ? done : 0;
							share.sampled_all[p] += of_all ? value : 0;
							share.done[p] += of_it ? done : 0;
							share.sampled[p] += of_it ? value : 0;
						}
			snprintf(what, sizeof(what), "statement %d, %s", t + 1,
			         f < 0 ? "of all" : function_names[f]);
			within &= judge_share(load, what, &share);
		}
	}
	return within;
}

static bool measure_sums(const char *load, bool *ledger)
{
	bool within = true;

	for (const char *thread = options.threads; thread;) {
		int count = atoi(thread);
		count = count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : count;
		for (const char *period = options.periods_ms; period;) {
			bool good = false;
			for (int round = 0; !good && round < ROUNDS; round++)
				good = measure_sum(load, count, atof(period) * 1e6, ledger);
			within &= good;
			period = strchr(period, ',');
			period += period != NULL;
		}
		thread = strchr(thread, ',');
		thread += thread != NULL;
	}
	return within;
}

int main(int argc, char **argv)
{
	static const char *const loads[] = { "quiet", "contended" };
	const struct test_option known[] = {
		{ "--seconds", "S", .number = &options.seconds, .least = 0.01 },
		{ "--threads", "N,...", .text = &options.threads },
		{ "--periods", "MS,...", .text = &options.periods_ms },
		{ "--loads", "quiet,contended", .text = &options.loads },
		{ "--parts", "sums,splits", .text = &options.parts },
	};
	bool within = true, ledger = true;

	read_options(argc, argv, known, sizeof(known) / sizeof(*known));
	seed = test_seed(1);
	monitor = open_connection();
	set_period(monitor, 0);
	printf("load, what, period; figure +- standard error; what it may be; *: it is not\n");
	for (int i = 0; i < 2; i++) {
		if (strstr(options.loads, loads[i]) == NULL)
			continue;
		if (i == 1)
			busy_start_per_processor(BUSY_PER_PROCESSOR);
		if (strstr(options.parts, "sums"))
			within &= measure_sums(loads[i], &ledger);
		if (strstr(options.parts, "splits")) {
			bool good = false;
			for (int round = 0; !good && round < ROUNDS; round++)
				good = measure_splits(loads[i], 1e6, &ledger);
			within &= good;
		}
	}
	busy_stop();
	printf("ledger: %s\n", ledger ? "exact" : "not exact");
	must(monitor, sqlite3_close(monitor), "close");
	return !within || !ledger;
}
