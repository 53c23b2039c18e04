/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost and the accuracy of sampling by the number of threads in queries: signals a second, the profiler's
 * CPU time, and the distance of the samples' sums from the truth, in standard errors. --check: ends with
 * status 1 if a bound of the budget does not hold.
 *
 *   budget_bench [--threads 1,4,16] [--seconds 10] [--period US] [--seeds N] [--percent 2] [--used 60]
 * [--check]
 *
 * --used: CPU time of all queries, in per cent of one processor. On a machine that others keep busy, 60 may
 * be more than is left. Threads then wait for a processor between queries, too.
 *
 * --percent is query_profiler_max_overhead_percent. With 100, only the number of threads limits the signals,
 * so their rate is the same for any number of threads. With 2, the cost is the same. --check tests both.
 *
 * First all threads are in queries, and the budget has two seconds to react. The cost of this beginning is
 * printed separately (start_ms, CPU time). Then each figure is the mean of several slices, with the standard
 * error that their differences give.
 *
 * due/s: the signals that would have come if each thread had had its own processor. On a busy machine one
 * signal stands for several points of its grid. cost_%: the cost that the budget counts, of one processor:
 * signals, handlers, the flusher. us_each: the same per signal, of the threads and of the flusher. beside_%:
 * watching the queries, and computing the budget. back_s: the time until the full rate is back after all
 * threads have ended.
 *
 * error_%: the standard error of all wall time, for a minute. A sum of samples varies at most as much as a
 * sum of equally many independent samples. But the times in queries and between them add up to the time of
 * the threads, which their timers count to within an interval. So the sum varies only with the smaller of the
 * two, and with each thread's last interval.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../budget/load.h"
#include "../lib/options.h"
#include "queryprof.h"

#define SETTLE_NS 2000000000ll
#define START_MOST_NS 30000000000ll /* for all threads to be in queries */
#define SLICES 8

#define BACK_MOST_NS 10000000000ll /* for the stretch to be 1 again; the bound is */
#define BACK_NS 2000000000ll

/* query_profiler_max_threads by default. */
#define FULL_RATE 16
#define FLAT 1.3

/* With fewer samples, the error of a sum is not known well enough. */
#define FEW_SAMPLES 12

/* Ticks a second at which dd-trace-rb sampled all threads, as published, before it sampled only 16 random
 * threads a tick. */
static const struct {
	int threads, ticks;
} peer[] = { { 4, 391 }, { 16, 97 }, { 32, 50 }, { 64, 24 } };

static const char *counts;
static double seconds = 10;
static unsigned long percent = 2;
static const char *period_us = "10000";
static int seeds = 1;
static bool check, failed;

/* The results that a run sends its parent. */
struct row {
	int threads;
	double signals, due, cost, stretch, error, used, ratio[2];
	double signals_error, cost_error, signal_us, store_us, start, beside, load, back;
	double z_all[2];            /* of all wall time, and of all CPU time */
	double z[2][LOAD_TEXTS];    /* of each text's time on the wall clock, and of its CPU time */
	double share_z[LOAD_TEXTS]; /* of its share of the wall clock */
	int64_t unknown, dropped;   /* signals; samples, if the flusher was too slow */
	bool flushed, few;          /* samples of CPU time */
};

static int64_t beside_ns(void)
{
	return load_metric("profiler_watch_cost_ns") + load_metric("store_pacer_cpu_time_ns");
}

static int64_t cost_ns(void)
{
	return load_metric("profiler_cost_ns") - load_metric("profiler_watch_cost_ns") +
	       load_metric("store_flusher_cpu_time_ns");
}

/* The mean of the slices. */
struct mean {
	double sum, square;
};

static void add(struct mean *mean, double value)
{
	mean->sum += value / SLICES;
	mean->square += value * value / SLICES;
}

static double error_of(const struct mean *mean)
{
	return sqrt(fmax(mean->square - mean->sum * mean->sum, 0) / (SLICES - 1));
}

static double own_cpu_s(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double nearest(double to, double from, double until)
{
	return to < from ? from : to > until ? until : to;
}

/* One number from the trace file. `first` and `second` are the parameters ?1 and ?2. */
static double ask(const char *path, const char *sql, int64_t first, int64_t second)
{
	sqlite3_stmt *statement = NULL;
	sqlite3 *db = NULL;
	double number = NAN;

	if (!sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) &&
	    !sqlite3_prepare_v2(db, sql, -1, &statement, NULL)) {
		sqlite3_bind_int64(statement, 1, first);
		sqlite3_bind_int64(statement, 2, second);
		if (sqlite3_step(statement) == SQLITE_ROW)
			number = sqlite3_column_double(statement, 0);
	}
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return number;
}

/* The variance of the threads' ends, each within its last interval. An interval without a sample yet is about
 * as long as new intervals are. */
static double read_ends(const char *path, double newest_ns)
{
	return ask(path,
	           "SELECT total(max(ns, ?1) * max(ns, ?1) / 6.0) FROM (SELECT max(timestamp_ns),"
	           " 1.0 * period_ns * stretch AS ns FROM samples JOIN series ON series.id = series"
	           " WHERE trace_type = 'Real' GROUP BY thread)",
	           (int64_t)newest_ns, 0);
}

/* Signals due a second between the two times, from the weights of the samples and their intervals. */
static double read_due(const char *path, int64_t from_ns, int64_t until_ns)
{
	return ask(path,
	           "SELECT total(1.0 * s.weight / r.stretch) FROM samples AS s JOIN series AS r"
	           " ON r.id = s.series WHERE r.trace_type = 'Real' AND s.timestamp_ns BETWEEN ?1 AND ?2",
	           from_ns, until_ns) *
	       1e9 / (double)(until_ns - from_ns);
}

static void compare(struct row *row, const struct load_truth *truth, const char *path)
{
	struct load_seen seen[2];
	double between = truth->between_ns, real[LOAD_TEXTS], real_all = 0;

	if (!load_read(path, "Real", &seen[0]) || !load_read(path, "CPU", &seen[1]))
		_exit(1);
	for (int type = 0; type < 2; type++) {
		double seen_all = 0, is_all = 0;
		double value = load_value(&seen[type]);
		for (int text = 0; text < LOAD_TEXTS; text++) {
			double is = type ? truth->cpu_ns[text]
			                 : nearest(seen[0].sum[text], truth->real_ns[text],
			                           truth->around_ns[text]);
			row->z[type][text] = (seen[type].sum[text] - is) / sqrt(is * value);
			seen_all += seen[type].sum[text];
			is_all += is;
			if (type == 0)
				real[text] = is;
		}
		if (type == 0)
			real_all = is_all;
		double most = is_all * value;
		double least =
			between * value + read_ends(path, row->stretch * strtod(period_us, NULL) * 1e3);
		double error = sqrt(type == 0 && least < most ? least : most);
		row->ratio[type] = seen_all / is_all;
		row->z_all[type] = (seen_all - is_all) / error;
		if (type == 0)
			row->error = error / is_all * sqrt((is_all + between) / row->threads / 60e9);
		row->few |= type == 1 && is_all < FEW_SAMPLES * value;
	}
	double sum = 0, square = 0;
	for (int text = 0; text < LOAD_TEXTS; text++) {
		sum += seen[0].sum[text];
		square += seen[0].square[text];
	}
	for (int text = 0; text < LOAD_TEXTS; text++) {
		double share = seen[0].sum[text] / sum, is = real[text] / real_all;
		double variance = (1 - share) * (1 - share) * seen[0].square[text] +
		                  share * share * (square - seen[0].square[text]);
		row->share_z[text] = (share - is) / (sqrt(variance) / sum);
	}
}

static void measure(struct row *row)
{
	int64_t start = load_now_ns(), beside = beside_ns(), slice_ns = (int64_t)(seconds * 1e9) / SLICES;
	struct mean signals = { .sum = 0 }, cost = { .sum = 0 };
	double used = own_cpu_s();
	int64_t began = load_metric("query_profiler_runs"), spent_first = cost_ns();
	int64_t storing = load_metric("store_flusher_cpu_time_ns");

	for (int slice = 0; slice < SLICES; slice++) {
		int64_t at = load_now_ns(), runs = load_metric("query_profiler_runs"), spent = cost_ns();
		load_pause(slice_ns);
		double took = (double)(load_now_ns() - at);
		add(&signals, (double)(load_metric("query_profiler_runs") - runs) / took * 1e9);
		add(&cost, (double)(cost_ns() - spent) / took);
	}
	double took = (double)(load_now_ns() - start);
	row->signals = signals.sum;
	row->signals_error = error_of(&signals);
	row->cost = cost.sum;
	row->cost_error = error_of(&cost);
	double count = (double)(load_metric("query_profiler_runs") - began);
	row->store_us = (double)(load_metric("store_flusher_cpu_time_ns") - storing) / count / 1e3;
	row->signal_us = (double)(cost_ns() - spent_first) / count / 1e3 - row->store_us;
	row->beside = (double)(beside_ns() - beside) / took;
	row->used = (own_cpu_s() - used) / took * 1e9;
}

/* Returns the duration in s. */
static double await_full_rate(void)
{
	int64_t began = load_now_ns();

	while ((load_metric("real_stretch") > 1 || load_metric("cpu_stretch") > 1) &&
	       load_now_ns() - began < BACK_MOST_NS)
		load_pause(10000000);
	return (double)(load_now_ns() - began) / 1e9;
}

static int64_t ns_of(struct timespec time)
{
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void run(struct row *row, uint64_t seed)
{
	struct load_truth truth = { .queries = 0 };
	char path[64], period[32], most[32];
	const qp_config config = { .size = sizeof(config), .trace_log_path = path };

	snprintf(path, sizeof(path), "/tmp/budget_bench.%d.trace", (int)getpid());
	snprintf(period, sizeof(period), "%sus", period_us);
	snprintf(most, sizeof(most), "%lu", percent);
	if (qp_init(&config) || qp_set(NULL, "query_profiler_max_overhead_percent", most) ||
	    qp_set(NULL, "query_profiler_real_time_period_ns", period) ||
	    qp_set(NULL, "query_profiler_cpu_time_period_ns", period) ||
	    qp_set(NULL, "log_queries_min_query_duration_ns", "3600000000000")) {
		fprintf(stderr, "%s\n", qp_error());
		_exit(1);
	}
	load_begin(row->threads, seed);
	int64_t began = load_now_ns();
	while (load_metric("threads_in_queries") < row->threads * 9 / 10 &&
	       load_now_ns() - began < START_MOST_NS)
		load_pause(100000000);
	load_pause(SETTLE_NS);
	row->start = (double)cost_ns() / 1e6;
	struct timespec from, until;
	clock_gettime(CLOCK_REALTIME, &from);
	measure(row);
	clock_gettime(CLOCK_REALTIME, &until);
	getloadavg(&row->load, 1);
	row->stretch = (double)load_metric("real_stretch");
	load_end(&truth);
	row->back = await_full_rate();
	row->unknown = load_ledger_unknown();
	row->flushed = qp_flush(60000) == QP_OK;
	row->dropped = load_metric("samples_dropped");
	qp_shutdown();
	compare(row, &truth, path);
	row->due = read_due(path, ns_of(from), ns_of(until));
	unlink(path);
	/* A thread that only reads does not remove these files. */
	size_t length = strlen(path);
	for (int i = 0; i < 2; i++) {
		snprintf(path + length, sizeof(path) - length, "%s", i ? "-shm" : "-wal");
		unlink(path);
	}
}

/* Runs in a process of its own. */
static bool run_apart(struct row *row, uint64_t seed)
{
	int ends[2], status;
	bool done;
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		return false;
	if (child == 0) {
		run(row, seed);
		_exit(write(ends[1], row, sizeof(*row)) != sizeof(*row));
	}
	close(ends[1]);
	done = read(ends[0], row, sizeof(*row)) == sizeof(*row);
	close(ends[0]);
	return waitpid(child, &status, 0) == child && status == 0 && done;
}

static void print_heads(void)
{
	printf("\nquery_profiler_max_overhead_percent %lu\n", percent);
	printf("%7s %-14s %7s %11s %-12s %-11s %8s %8s %6s %7s %8s %6s %5s  %-41s %-41s %s\n", "threads",
	       "signals/s", "due/s", "dd-trace-rb", "cost_%", "us_each", "beside_%", "start_ms", "used_%",
	       "stretch", "error_%", "back_s", "load", "wall time / truth, z, by text",
	       "CPU time / truth, z, by text", "ledger");
}

static double print_row(const struct row *row)
{
	double worst = 0;
	char ticks[16] = "";

	for (size_t i = 0; i < sizeof(peer) / sizeof(*peer); i++)
		if (peer[i].threads == row->threads)
			snprintf(ticks, sizeof(ticks), "%d", peer[i].ticks);
	printf("%7d %6.0f +- %4.0f %7.0f %11s %4.2f +- %4.2f %4.1f + %4.1f %8.2f %8.0f %6.1f %7.0f %8.2f"
	       " %6.2f %5.0f ",
	       row->threads, row->signals, row->signals_error, row->due, ticks, 100 * row->cost,
	       100 * row->cost_error, row->signal_us, row->store_us, 100 * row->beside, row->start,
	       100 * row->used, row->stretch, 100 * row->error, row->back, row->load);
	for (int type = 0; type < 2; type++) {
		printf(" %6.3f %+6.2f", row->ratio[type], row->z_all[type]);
		for (int text = 0; text < LOAD_TEXTS; text++) {
			printf(" %+6.2f", row->z[type][text]);
			if (type == 0)
				worst = fmax(worst, fabs(row->z[type][text]));
		}
		if (type == 0 || !row->few)
			worst = fmax(worst, fabs(row->z_all[type]));
		printf(" ");
	}
	if (row->unknown)
		printf(" %lld signals unknown", (long long)row->unknown);
	else
		printf(" adds up");
	if (row->dropped)
		printf(", %lld samples dropped", (long long)row->dropped);
	printf("%s\n", row->flushed ? "" : ", not flushed");
	fflush(stdout);
	return worst;
}

static void fail_if(bool wrong, const char *what)
{
	if (wrong && check)
		printf("FAILED: %s\n", what);
	failed |= wrong && check;
}

/* `full` has the first number of threads with the full rate. The signals due are the same in each row, unless
 * the budget allows fewer; then the cost is the same. */
static void check_flat(const struct row *row, const struct row *full)
{
	double most = fmax(full->due, full->signals) * FLAT, least = full->due / FLAT;
	double cost = full->cost / FLAT - 3 * hypot(row->cost_error, full->cost_error / FLAT);

	fail_if(row->signals - 3 * row->signals_error > most, "more signals than of few threads");
	fail_if(row->due > most + 3 * row->signals_error, "more signals due than of few threads");
	fail_if(row->due < least - 3 * row->signals_error && (percent == 100 || row->cost < cost),
	        "fewer signals than of few threads, though they cost less");
}

static void check_row(const struct row *row, double worst)
{
	fail_if(row->unknown, "the ledger");
	fail_if(row->dropped || !row->flushed, "samples are missing");
	fail_if(worst > 4, "a sum is more than 4 standard errors from the truth");
	fail_if(row->error > 0.01, "the error is more than 1 % a minute");
	fail_if(percent && row->cost - 3 * row->cost_error > (double)percent / 100,
	        "the cost is above the budget");
	fail_if(row->back > (double)BACK_NS / 1e9, "the full rate was not back after 2 s");
}

/* Squares of z over the seeds: of sums, and of shares. */
struct squares {
	double all[2], texts[2], shares;
	int outside; /* seeds with a share that is more than 3 standard errors off */
};

static void add_squares(struct squares *squares, const struct row *row)
{
	double most = 0;

	for (int text = 0; text < LOAD_TEXTS; text++) {
		most = fmax(most, fabs(row->share_z[text]));
		squares->shares += row->share_z[text] * row->share_z[text];
		for (int type = 0; type < 2; type++)
			squares->texts[type] += row->z[type][text] * row->z[type][text];
	}
	for (int type = 0; type < 2; type++)
		squares->all[type] += row->z_all[type] * row->z_all[type];
	squares->outside += most > 3;
	fail_if(most > 4, "a share is more than 4 standard errors from the truth");
}

/* With a correct standard error the squares are 1 on average; with a wide one they are smaller. */
static void check_squares(const struct squares *squares)
{
	double wall = squares->all[0] / seeds, cpu = squares->all[1] / seeds;
	double texts = fmax(squares->texts[0], squares->texts[1]) / seeds / LOAD_TEXTS;

	printf("mean square of z: wall time %.2f, its texts %.2f, their shares %.2f; CPU time %.2f, its texts"
	       " %.2f\n",
	       wall, squares->texts[0] / seeds / LOAD_TEXTS, squares->shares / seeds / LOAD_TEXTS, cpu,
	       squares->texts[1] / seeds / LOAD_TEXTS);
	printf("shares of the texts within 3 standard errors: %d of %d seeds\n", seeds - squares->outside,
	       seeds);
	fail_if(fmax(wall, cpu) > 1 + 4 * sqrt(2.0 / seeds), "the error of all time is too small");
	fail_if(texts > 1 + 4 * sqrt(2.0 / seeds / LOAD_TEXTS), "the errors of the texts are too small");
	/* By chance, one of twenty seeds is outside in every fifth run, and two seeds in every fiftieth. */
	fail_if(squares->outside > 1 + seeds / 20, "shares");
}

/* Runs all numbers of threads with all seeds. Returns false if one of them could not run. */
static bool pass(const char *numbers)
{
	struct row full = { .threads = 0 };

	print_heads();
	for (const char *at = numbers; at; at = strchr(at, ','), at += at != NULL) {
		struct squares squares = { .shares = 0 };
		for (int seed = 1; seed <= seeds; seed++) {
			struct row row = { .threads = atoi(at) };
			if (!run_apart(&row, (uint64_t)seed))
				return false;
			double worst = print_row(&row);
			add_squares(&squares, &row);
			if (row.threads == FULL_RATE)
				full = row;
			check_row(&row, worst);
			if (row.threads > FULL_RATE && full.threads)
				check_flat(&row, &full);
		}
		if (seeds > 1)
			check_squares(&squares);
	}
	return true;
}

int main(int argc, char **argv)
{
	double seed_count = seeds, most_percent = (double)percent, used = 100 * load_used;
	const struct test_option options[] = {
		{ "--check", NULL, .flag = &check },
		{ "--threads", "N,...", .text = &counts },
		{ "--seconds", "S", .number = &seconds, .least = 0.1 },
		{ "--period", "US", .text = &period_us },
		{ "--seeds", "N", .number = &seed_count, .least = 1 },
		{ "--percent", "N", .number = &most_percent },
		{ "--used", "N", .number = &used, .least = 0.1 },
	};

	read_options(argc, argv, options, sizeof(options) / sizeof(*options));
	seeds = (int)seed_count;
	percent = (unsigned long)most_percent;
	load_used = used / 100;
	if (!pass(counts ? counts : "1,4,16,64,256,1024,4096"))
		return 1;
	if (check && !counts) {
		percent = 100;
		seconds /= 2;
		if (!pass("16,64,256,1024,4096"))
			return 1;
	}
	return failed;
}
