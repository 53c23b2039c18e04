/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget, one scenario per process: more threads than it allows, or samples that cost more than it
 * allows. Signals become less frequent, and the sums of the samples stay right. Also tests its reports: the
 * cost, the intervals, and the number of dropped samples if no slot had room for it.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/seed.h"
#include "../lib/spin.h"
#include "load.h"
#include "queryprof.h"

/* The longest wait for an event that takes at most two seconds on an idle machine. */
#define PATIENCE_NS 300000000000ll

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			printf("FAILED, line %d: %s\n", __LINE__, #condition);                               \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

/* With fewer samples, the error of a sum is not known well enough. */
#define FEW_SAMPLES 12

static char path[64];
static int64_t ring_bytes; /* 0: the default */

static void set(const char *name, const char *value)
{
	if (qp_set(NULL, name, value)) {
		printf("%s\n", qp_error());
		exit(1);
	}
}

static void start(const char *real_period, const char *cpu_period)
{
	const qp_config config = { .size = sizeof(config),
		                   .trace_log_path = path,
		                   .trace_log_ring_bytes = ring_bytes };
	char log[sizeof(path) + 4];

	snprintf(path, sizeof(path), "/tmp/test_budget.%d.trace", (int)getpid());
	snprintf(log, sizeof(log), "%s-wal", path);
	/* A killed process with the same number may have left these files. */
	unlink(path);
	unlink(log);
	CHECK(qp_init(&config) == QP_OK);
	set("query_profiler_real_time_period_ns", real_period);
	set("query_profiler_cpu_time_period_ns", cpu_period);
	set("log_queries_min_query_duration_ns", "3600000000000");
}

static void await(const char *metric, int64_t from, int64_t until)
{
	int64_t began = load_now_ns(), value;

	while (value = load_metric(metric), value < from || value > until) {
		CHECK(load_now_ns() - began < PATIENCE_NS);
		load_pause(20000000);
	}
	printf("%s is %lld after %.2f s\n", metric, (long long)value, (double)(load_now_ns() - began) / 1e9);
}

/* The cost sets the stretch of both clocks, one after the other, so it may change while the test reads it. */
static void await_equal_stretch(void)
{
	int64_t began = load_now_ns(), real;

	while (real = load_metric("real_stretch"), real == 1 || real != load_metric("cpu_stretch")) {
		CHECK(load_now_ns() - began < PATIENCE_NS);
		load_pause(1000000);
	}
}

static sqlite3 *open_trace(void)
{
	sqlite3 *db = NULL;

	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
	sqlite3_busy_timeout(db, 60000);
	return db;
}

/* Reads one number from the trace file. */
static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) || sqlite3_step(statement) != SQLITE_ROW) {
		printf("FAILED: %s: %s\n", sql, sqlite3_errmsg(db));
		exit(1);
	}
	int64_t number = sqlite3_column_int64(statement, 0);
	printf("%lld: %s\n", (long long)number, sql);
	sqlite3_finalize(statement);
	return number;
}

/* Compares the sums of the texts' CPU time, and of all CPU time, if enough samples are to be expected. */
static void compare_cpu(const struct load_truth *truth, const struct load_seen *seen, double errors)
{
	double value = load_value(seen), seen_all = 0, is_all = 0;

	for (int text = 0; text <= LOAD_TEXTS; text++) {
		double sum = text < LOAD_TEXTS ? seen->sum[text] : seen_all;
		double is = text < LOAD_TEXTS ? truth->cpu_ns[text] : is_all, error = sqrt(is * value);
		seen_all += sum;
		is_all += is;
		printf("%s: %.0f ms of CPU time +- %.0f of %.0f\n",
		       text < LOAD_TEXTS ? load_texts[text] : "all", sum / 1e6, error / 1e6, is / 1e6);
		CHECK(is < FEW_SAMPLES * value || fabs(sum - is) < errors * error);
	}
}

/* The sums of the texts are right within `errors` standard errors, every signal is accounted for, and every
 * stored sample is in the file. */
static void finish(const struct load_truth *truth, double errors)
{
	struct load_seen seen, cpu;

	CHECK(qp_flush(60000) == QP_OK);
	CHECK(load_ledger_unknown() == 0);
	CHECK(load_metric("samples_dropped") == 0);
	CHECK(load_read(path, "Real", &seen) && load_read(path, "CPU", &cpu));
	CHECK(seen.samples + cpu.samples == load_metric("samples"));
	if (cpu.samples > 0) /* if CPU timers are on */
		compare_cpu(truth, &cpu, errors);
	for (int text = 0; text < LOAD_TEXTS; text++) {
		double error = sqrt(truth->real_ns[text] * load_value(&seen));
		printf("%s: %.0f ms +- %.0f of %.0f to %.0f\n", load_texts[text], seen.sum[text] / 1e6,
		       error / 1e6, truth->real_ns[text] / 1e6, truth->around_ns[text] / 1e6);
		CHECK(seen.sum[text] > truth->real_ns[text] - errors * error);
		CHECK(seen.sum[text] < truth->around_ns[text] + errors * error);
	}
	CHECK(qp_shutdown() == QP_OK);
	unlink(path);
}

/* 64 threads, of which 16 could be sampled at the full rate: each gets a fourth of the samples, with four
 * times the weight. */
static void test_threads(void)
{
	struct load_truth truth = { .queries = 0 };

	set("query_profiler_max_overhead_percent", "0");
	start("10ms", "0");
	load_begin(64, test_seed(1));
	await("real_stretch", 4, 4);
	CHECK(load_metric("cpu_stretch") == 1);
	load_pause(1500000000);
	int64_t began = load_now_ns(), signals = load_metric("query_profiler_runs");
	load_pause(1000000000);
	double rate = (double)(load_metric("query_profiler_runs") - signals) /
	              ((double)(load_now_ns() - began) / 1e9);
	printf("%.0f signals a second\n", rate);
	CHECK(rate < 16 * 100 * 1.2); /* late signals carry their overruns */
	load_end(&truth);
	await("real_stretch", 1, 1);
	/* The stretch returns with new threads. */
	load_begin(40, 2);
	await("real_stretch", 3, 3); /* 2.5, so some samples have 2 */
	set("query_profiler_max_threads", "0");
	await("real_stretch", 1, 1);
	load_end(&truth);
	finish(&truth, 4.5);
}

/* A period so short that a sample costs a good part of it. */
static void test_overhead(void)
{
	struct load_truth truth = { .queries = 0 };

	ring_bytes = 64 << 20; /* until the intervals are long, it fills by some MB a second */
	start("100us", "0");
	set("query_profiler_max_threads", "0");
	set("query_profiler_max_overhead_percent", "1");
	load_begin(4, test_seed(3));
	await("real_stretch", 2, 1000000);
	await_equal_stretch();
	await("profiler_cost_ppm", 1, 11000);
	set("query_profiler_max_overhead_percent", "100");
	await("real_stretch", 1, 1);
	set("query_profiler_max_overhead_percent", "0");
	load_end(&truth);
	finish(&truth, 4.5);
}

/* 8 threads, of which 2 could be sampled at the full rate: tests how the tables show it. */
static void test_reported(void)
{
	struct load_truth truth = { .queries = 0 };

	set("query_profiler_max_threads", "2");
	set("query_profiler_max_overhead_percent", "0");
	start("5ms", "5ms");
	load_begin(8, test_seed(7));
	await("real_stretch", 4, 4);
	await("samples", load_metric("samples") + 400, INT64_MAX);
	load_end(&truth);
	CHECK(qp_flush(60000) == QP_OK);

	CHECK(load_metric("store_pacer_cpu_time_ns") > 0); /* the pacer has run, because it had work */
	sqlite3 *db = open_trace();
	int64_t cost_ns = load_metric("profiler_cost_ns");
	printf("profiler_cost_ns is %lld\n", (long long)cost_ns);
	CHECK(ask(db, "SELECT sum(profiler_cost_ns) FROM query_log") <= cost_ns);
	CHECK(ask(db, "SELECT count(*) FROM query_log WHERE samples_real + samples_cpu > 0") > 0);
	/* Signals whose samples had no room cost something, too. Watching a run costs less than a sample. */
	CHECK(ask(db, "SELECT count(*) FROM query_log WHERE samples_dropped = 0"
	              " AND (samples_real + samples_cpu > 0) <> (profiler_cost_ns > 1000)") == 0);
	/* The cost of watching is about the same for each run, and is measured for a part of the runs. */
	int64_t watch_ns = load_metric("profiler_watch_cost_ns");
	printf("watching cost %.0f ns a query\n", (double)watch_ns / (double)truth.queries);
	CHECK(watch_ns >= (int64_t)truth.queries && watch_ns <= 10000 * (int64_t)truth.queries);
	CHECK(ask(db, "SELECT count(*) FROM (SELECT trace_type, interval_ns FROM trace_log"
	              " EXCEPT SELECT trace_type, period_ns * stretch FROM series)") == 0);
	CHECK(ask(db, "SELECT count(*) FROM trace_log WHERE trace_type = 'Real' AND interval_ns = 20000000") >
	      0);
	/* Whenever the pacer looked at the wall clock's intervals, there were 1 to 8 threads. */
	CHECK(ask(db, "SELECT count(*) FROM trace_log WHERE trace_type = 'Real'"
	              " AND interval_ns NOT IN (5000000, 10000000, 15000000, 20000000)") == 0);
	CHECK(ask(db, "SELECT count(*) FROM trace_log WHERE trace_type = 'CPU' AND interval_ns <> 5000000") ==
	      0);
	/* A signal's weight covers at least its interval. */
	CHECK(ask(db, "SELECT count(*) FROM trace_log WHERE weight * period_ns < interval_ns") == 0);
	sqlite3_close(db);
	finish(&truth, 4.5);
}

/* Without a limit, the ring is soon full, because the flusher may not write. Nevertheless each signal is
 * accounted for, and each sample that has a place in the ring gets into the file. */
static void test_unlimited(void)
{
	struct load_truth truth = { .queries = 0 };

	set("query_profiler_max_threads", "0");
	set("query_profiler_max_overhead_percent", "0");
	ring_bytes = 65536;
	start("1ms", "10ms");
	load_begin(256, test_seed(9));
	await("store_samples", 1, INT64_MAX);
	sqlite3 *db = open_trace();
	CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
	await("samples_dropped", 1000, INT64_MAX);
	CHECK(load_metric("real_stretch") == 1);
	CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
	load_end(&truth);
	/* If the lock was held for two seconds, the flusher abandoned a batch. */
	CHECK(qp_flush(60000) == QP_OK || load_metric("store_lost") > 0);

	int64_t dropped = load_metric("samples_dropped");
	int64_t missing = load_metric("samples") - load_metric("store_samples");
	printf("%lld signals, %lld samples dropped, %lld stored, %lld missing of %lld rows lost\n",
	       (long long)load_metric("query_profiler_runs"), (long long)dropped,
	       (long long)load_metric("store_samples"), (long long)missing,
	       (long long)load_metric("store_lost"));
	CHECK(load_ledger_unknown() == 0);
	CHECK(missing >= 0 && missing <= load_metric("store_lost"));
	CHECK(ask(db, "SELECT count(*) FROM samples") == load_metric("store_samples"));
	/* Some queries' rows had no room in the ring, either. */
	int64_t reported = ask(db, "SELECT sum(samples_dropped) FROM query_log");
	CHECK(reported <= dropped);
	sqlite3_close(db);
	CHECK(qp_shutdown() == QP_OK);
	unlink(path);
}

/* Another process holds the file's lock, so the ring fills. Intervals get longer before it is full, and short
 * again after it is emptied. */
static void test_ring(void)
{
	struct load_truth truth = { .queries = 0 };

	set("query_profiler_max_threads", "4");            /* as many as there are, so only the pacer looks */
	set("query_profiler_max_overhead_percent", "100"); /* more than they ever cost */
	ring_bytes = 4 << 20;
	start("2ms", "10ms");
	load_begin(4, test_seed(11));
	await("store_pacer_cpu_time_ns", 1, INT64_MAX);
	await("store_samples", 1, INT64_MAX);
	await("real_stretch", 1, 1); /* even if the flusher was late */
	sqlite3 *db = open_trace();
	CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
	await("real_stretch", 4, 16);
	CHECK(load_metric("cpu_stretch") > 1);
	CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	await("real_stretch", 1, 1);
	load_end(&truth);
	printf("%lld samples dropped, %lld rows lost\n", (long long)load_metric("samples_dropped"),
	       (long long)load_metric("store_lost"));
	/* On a busy machine the pacer may look too late. */
	if (load_metric("samples_dropped") == 0 && load_metric("store_lost") == 0) {
		finish(&truth, 4.5);
		return;
	}
	CHECK(load_ledger_unknown() == 0);
	CHECK(qp_shutdown() == QP_OK);
	unlink(path);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = { { "threads", test_threads },
		          { "overhead", test_overhead },
		          { "reported", test_reported },
		          { "unlimited", test_unlimited },
		          { "ring", test_ring } };

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 2 && i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		if (strcmp(argv[1], scenarios[i].name) == 0) {
			scenarios[i].run();
			return 0;
		}
	}
	printf("usage: test_budget threads|overhead|reported|unlimited|ring\n");
	return 2;
}
