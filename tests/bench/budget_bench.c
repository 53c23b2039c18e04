/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sampling costs, and how right it is, by the number of threads in queries: signals a
 * second, the profiler's CPU time, and how far the samples' sums lie from the truth, in
 * standard errors. --pending: about so many timers can be made, other threads have the shared one.
 * --check: ends with 1 where a bound of the budget does not hold.
 *
 *   budget_bench [--threads 1,4,16] [--seconds 10] [--period US] [--seeds N] [--pending N] [--check]
 *
 * error_%: the standard error of all wall time, a minute. A sum of samples varies as that of as many
 * independent ones, at most. But the times in queries and between them add up to the time of the
 * threads, which their grids count to a point: so it varies as the sum of the less of both, and of the
 * points at the ends.
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../budget/load.h"
#include "queryprof.h"

#define SETTLE_NS 2000000000ll

/* Below, the error of a sum is not known well enough. */
#define FEW_SAMPLES 12

/* Ticks a second in which dd-trace-rb sampled all threads, as it published, before it took 16 of them at
 * random. */
static const struct {
	int threads, ticks;
} peer[] = { { 4, 391 }, { 16, 97 }, { 32, 50 }, { 64, 24 } };

static const char *counts = "1,4,16,64,256,1024,4096";
static double seconds = 10;
static const char *period_us = "10000";
static int seeds = 1;
static unsigned long pending; /* 0: as many as there may be */
static bool check, series, failed;

/* What a run tells its parent. */
struct row {
	int threads;
	double signals, cost, stretch, error, used, ratio[2];
	double z_all[2];            /* of all wall time, and of all CPU time */
	double z[2][LOAD_TEXTS];    /* of each text's time on the wall clock, and of its CPU time */
	double share_z[LOAD_TEXTS]; /* of its share of the wall clock */
	int64_t unknown, dropped;   /* signals; samples, as the flusher was too slow */
	bool flushed, few;          /* samples of CPU time */
};

static int64_t cost_ns(void)
{
	return load_metric("profiler_cost_ns") + load_metric("store_flusher_cpu_time_ns") +
	       load_metric("store_pacer_cpu_time_ns");
}

/* --series: what a run does, half a second at a time. */
static void *print_series(void *unused)
{
	static const char *const names[] = { "query_profiler_runs",	  "samples",
		                             "signals_idle",		  "profiler_cost_ns",
		                             "profiler_watch_cost_ns",	  "store_flusher_cpu_time_ns",
		                             "store_pacer_cpu_time_ns", "store_samples" };
	enum { NAMES = sizeof names / sizeof *names };
	(void)unused;
	int64_t before[NAMES] = { 0 }, at = load_now_ns(), start = at;

	printf("%6s %9s %9s %9s %8s %8s %8s %8s %8s %9s %7s %7s %8s\n", "s", "signals/s", "samples/s", "idle/s",
	       "signal_%", "watch_%", "flush_%", "pacer_%", "stored/s", "queries", "real", "cpu", "ppm");
	for (;;) {
		load_pause(500000000);
		double since = (double)(load_now_ns() - at) / 1e9, now[NAMES];
		at = load_now_ns();
		for (int i = 0; i < NAMES; i++) {
			int64_t value = load_metric(names[i]);
			now[i] = (double)(value - before[i]) / since;
			before[i] = value;
		}
		printf("%6.1f %9.0f %9.0f %9.0f %8.2f %8.2f %8.2f %8.2f %8.0f %9lld %7lld %7lld %8lld\n",
		       (double)(at - start) / 1e9, now[0], now[1], now[2], (now[3] - now[4]) / 1e7,
		       now[4] / 1e7, now[5] / 1e7, now[6] / 1e7, now[7],
		       (long long)load_metric("threads_in_queries"), (long long)load_metric("real_stretch"),
		       (long long)load_metric("cpu_stretch"), (long long)load_metric("profiler_cost_ppm"));
		fflush(stdout);
	}
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

static void compare(struct row *row, const struct load_truth *truth, const char *path)
{
	struct load_seen seen[2];
	double between = truth->between_ns;

	if (!load_read(path, "Real", &seen[0]) || !load_read(path, "CPU", &seen[1]))
		_exit(1);
	for (int type = 0; type < 2; type++) {
		double seen_all = 0, is_all = 0;
		double value = type ? load_cpu_value(&seen[1], truth) : load_value(&seen[0]);
		for (int text = 0; text < LOAD_TEXTS; text++) {
			double is = type ? truth->cpu_ns[text]
			                 : nearest(seen[0].sum[text], truth->real_ns[text],
			                           truth->around_ns[text]);
			row->z[type][text] = (seen[type].sum[text] - is) / sqrt(is * value);
			seen_all += seen[type].sum[text];
			is_all += is;
		}
		double most = is_all * value, least = between * value + row->threads * value * value / 2;
		double error = sqrt(type == 0 && least < most ? least : most);
		row->ratio[type] = seen_all / is_all;
		row->z_all[type] = (seen_all - is_all) / error;
		if (type == 0)
			row->error = error / is_all * sqrt((is_all + between) / row->threads / 60e9);
		row->few |= type == 1 && is_all < FEW_SAMPLES * value;
	}
	double sum = 0, square = 0, whole = 0;
	for (int text = 0; text < LOAD_TEXTS; text++) {
		sum += seen[0].sum[text];
		square += seen[0].square[text];
		whole += truth->real_ns[text];
	}
	for (int text = 0; text < LOAD_TEXTS; text++) {
		double share = seen[0].sum[text] / sum, is = truth->real_ns[text] / whole;
		double variance = (1 - share) * (1 - share) * seen[0].square[text] +
		                  share * share * (square - seen[0].square[text]);
		row->share_z[text] = (share - is) / (sqrt(variance) / sum);
	}
}

static void run(struct row *row, uint64_t seed)
{
	struct load_truth truth = { .queries = 0 };
	char path[64], period[32];
	const qp_config config = { .size = sizeof config, .trace_log_path = path };

	if (pending && !load_limit_pending(pending))
		_exit(1);
	snprintf(path, sizeof path, "/tmp/budget_bench.%d.trace", (int)getpid());
	snprintf(period, sizeof period, "%sus", period_us);
	if (qp_init(&config) || qp_set(NULL, "query_profiler_real_time_period_ns", period) ||
	    qp_set(NULL, "query_profiler_cpu_time_period_ns", period) ||
	    qp_set(NULL, "log_queries_min_query_duration_ns", "3600000000000")) {
		fprintf(stderr, "%s\n", qp_error());
		_exit(1);
	}
	int64_t began = load_now_ns();
	pthread_t printer;
	if (series)
		pthread_create(&printer, NULL, print_series, NULL);
	load_begin(row->threads, seed);
	if (series)
		printf("began %.2f s\n", (double)(load_now_ns()-began)/1e9);
	load_pause(SETTLE_NS);
	int64_t start = load_now_ns(), signals = load_metric("query_profiler_runs"), cost = cost_ns();
	double used = own_cpu_s();
	load_pause((int64_t)(seconds * 1e9) - SETTLE_NS);
	double took = (double)(load_now_ns() - start);
	row->signals = (double)(load_metric("query_profiler_runs") - signals) / took * 1e9;
	row->cost = (double)(cost_ns() - cost) / took;
	row->used = (own_cpu_s() - used) / took * 1e9;
	row->stretch = (double)load_metric("real_stretch");
	load_end(&truth);
	row->unknown = load_ledger_unknown();
	row->flushed = qp_flush(60000) == QP_OK;
	row->dropped = load_metric("samples_dropped");
	qp_shutdown();
	compare(row, &truth, path);
	unlink(path);
	/* Who only reads leaves them. */
	size_t length = strlen(path);
	for (int i = 0; i < 2; i++) {
		snprintf(path + length, sizeof path - length, "%s", i ? "-shm" : "-wal");
		unlink(path);
	}
}

/* In a process of its own. */
static bool run_apart(struct row *row, uint64_t seed)
{
	int ends[2], status;
	bool done;
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		return false;
	if (child == 0) {
		run(row, seed);
		_exit(write(ends[1], row, sizeof *row) != sizeof *row);
	}
	close(ends[1]);
	done = read(ends[0], row, sizeof *row) == sizeof *row;
	close(ends[0]);
	return waitpid(child, &status, 0) == child && status == 0 && done;
}

static void print_heads(void)
{
	printf("%7s %9s %10s %8s %8s %7s %8s  %-41s %-41s %s\n", "threads", "signals/s", "dd-trace-rb",
	       "cost_%", "used_%", "stretch", "error_%", "wall time / truth, z, by text",
	       "CPU time / truth, z, by text", "ledger");
}

static double print_row(const struct row *row)
{
	double worst = 0;
	char ticks[16] = "";

	for (size_t i = 0; i < sizeof peer / sizeof *peer; i++)
		if (peer[i].threads == row->threads)
			snprintf(ticks, sizeof ticks, "%d", peer[i].ticks);
	printf("%7d %9.0f %10s %8.2f %8.1f %7.0f %8.2f ", row->threads, row->signals, ticks, 100 * row->cost,
	       100 * row->used, row->stretch, 100 * row->error);
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

int main(int argc, char **argv)
{
	double at_16 = 0;

	for (int i = 1; i < argc; i++) {
		check |= !strcmp(argv[i], "--check");
		series |= !strcmp(argv[i], "--series");
		if (i + 1 == argc)
			break;
		if (!strcmp(argv[i], "--threads"))
			counts = argv[i + 1];
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--period"))
			period_us = argv[i + 1];
		else if (!strcmp(argv[i], "--pending"))
			pending = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--seeds"))
			seeds = atoi(argv[i + 1]);
	}
	print_heads();
	for (const char *at = counts; at; at = strchr(at, ','), at += at != NULL) {
		int within = 0;
		for (int seed = 1; seed <= seeds; seed++) {
			struct row row = { .threads = atoi(at) };
			if (!run_apart(&row, (uint64_t)seed))
				return 1;
			double worst = print_row(&row), share = 0;
			for (int text = 0; text < LOAD_TEXTS; text++)
				share = fmax(share, fabs(row.share_z[text]));
			within += share <= 3;
			if (row.threads == 16)
				at_16 = row.signals;
			fail_if(row.unknown, "the ledger");
			fail_if(row.dropped || !row.flushed, "samples are missing");
			fail_if(worst > 4, "a sum is more than 4 standard errors from the truth");
			fail_if(row.error > 0.01 && !pending, "the error is more than 1 % a minute");
			fail_if(row.threads > 16 && at_16 > 0 && row.signals > 1.3 * at_16,
			        "more than 1.3 times the signals of 16 threads");
		}
		if (seeds > 1)
			printf("shares of the texts within 3 standard errors: %d of %d seeds\n", within,
			       seeds);
		fail_if(seeds > 1 && within < seeds, "shares");
	}
	return failed;
}
