/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long time under sampling: 8 threads in queries all the time, each sampled every millisecond of wall time,
 * with limits of cost off. These invariants must hold from the first minute to the end:
 *
 * - the host's memory stays within 1 MiB of its size after the first minute;
 * - the trace file, its WAL included, stays within trace_log_max_bytes, and is trimmed;
 * - the flusher uses no more CPU time per sample than a plain table uses per row, at the same pace on the
 *   same machine: the bare row, inserted and removed again. The flusher's time includes its stacks, queries
 *   and ring; a query has a row for some 200 samples. The budget is 1 us. A slow or busy machine exceeds it;
 * - nothing is lost: every sample and every logged run is stored, and each signal has its outcome.
 *
 *   soak [--seconds 3600] [--print SECONDS] [--naps 200]
 *
 * --naps: a query's naps, of a millisecond each. Each query has a row in query_log, which costs the flusher
 * time, too.
 *
 * The threads sleep most of the time, inside of queries. Wall time is sampled, so a soak takes little CPU
 * time from other programs. Statements are prepared each time, connections last a second and threads twenty,
 * so all their resources must be released. A line is printed every 60 seconds, or every --print seconds. The
 * last lines are the figures with their bounds. In a run of less than two minutes, the first quarter replaces
 * the first minute.
 */
#include <malloc.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/must.h"
#include "../lib/options.h"
#include "../lib/seed.h"

#define THREADS 8
#define TEXTS 40 /* different statements */
#define CONNECTION_S 1.1
#define CONNECTIONS 20    /* of a thread */
#define OPEN_AT_ONCE 4000 /* statements, in the beginning */
#define FILE_BYTES 16777216
#define MEMORY_BYTES 1048576
#define FLUSHER_NS 1000.0 /* budget, as printed */
#define FLUSHER_PLAIN 1.0 /* of a plain table's CPU time */
#define PLAIN_ROWS 8000   /* a second, like the samples */
#define PLAIN_KEPT 400000 /* some 16 MiB */
#define PLAIN_ROUNDS 12
#define LOOK_MS 250

static atomic_bool over;
static atomic_llong queries;
static double naps = 200;
static uint64_t seed;

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- the host ------------------------------------------------------------------------------ */

static void nap(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	pause_ns(1000000);
	sqlite3_result_int(context, sqlite3_value_int(values[0]));
}

static sqlite3 *open_connection(const char *settings)
{
	sqlite3 *db = NULL;

	must(NULL, sqlite3_open(":memory:", &db), "open");
	must_load(db, QUERYPROF_LIBRARY);
	must(db, sqlite3_create_function(db, "nap", 1, SQLITE_UTF8, NULL, nap, NULL, NULL), "nap");
	must(db, sqlite3_exec(db, settings, NULL, NULL, NULL), settings);
	return db;
}

static void query(sqlite3 *db, unsigned text)
{
	sqlite3_stmt *stmt;
	char sql[160];

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) "
	         "SELECT sum(nap(x)) AS t%u FROM c",
	         (int)naps, text);
	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
	must(db, sqlite3_step(stmt), sql);
	must(db, sqlite3_finalize(stmt), sql);
	atomic_fetch_add(&queries, 1);
}

static void *live(void *context)
{
	unsigned state = (unsigned)(seed + (uintptr_t)context);

	for (int c = 0; c < CONNECTIONS && !atomic_load(&over); c++) {
		sqlite3 *db = open_connection("PRAGMA query_profiler_cpu_time_period_ns = '10ms';"
		                              "PRAGMA query_profiler_real_time_period_ns = '1ms'");
		for (double end = now_s() + CONNECTION_S; now_s() < end && !atomic_load(&over);)
			query(db, (unsigned)rand_r(&state) % TEXTS);
		must(db, sqlite3_close(db), "close");
	}
	return NULL;
}

/* The library keeps memory for the highest number of statements that were open at the same time, and places
 * it by their addresses. Later statements at other addresses can use it. */
static void open_many(void)
{
	static sqlite3_stmt *stmts[OPEN_AT_ONCE];
	sqlite3 *db = open_connection("PRAGMA query_profiler_real_time_period_ns = '1ms'");

	for (int i = 0; i < OPEN_AT_ONCE; i++) {
		must(db, sqlite3_prepare_v2(db, "SELECT 1 UNION ALL SELECT 2", -1, &stmts[i], NULL), "many");
		must(db, sqlite3_step(stmts[i]), "many");
	}
	for (int i = 0; i < OPEN_AT_ONCE; i++)
		sqlite3_finalize(stmts[i]);
	must(db, sqlite3_close(db), "close");
}

/* Runs one thread after the other. */
static void *live_on(void *context)
{
	while (!atomic_load(&over)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, live, context))
			exit(2);
		pthread_join(thread, NULL);
	}
	return NULL;
}

/* --- threads that read it --------------------------------------------------------------------- */

enum {
	RUNS,
	TAKEN,
	SAMPLES,
	DROPPED,
	IDLE,
	ASKED,
	LATE,
	FOREIGN,
	REENTERED,
	STORED,
	LOST,
	LOGGED,
	STORED_QUERIES,
	RING_DROPPED,
	TRIMMED,
	ERRORS,
	FLUSHER_CPU,
	OVERRUNS,
	METRICS
};
static const char *const names[METRICS] = {
	"query_profiler_runs",
	"samples_taken",
	"samples",
	"samples_dropped",
	"signals_idle",
	"signals_asked",
	"signals_late",
	"signals_foreign",
	"signals_reentered",
	"store_samples",
	"store_lost",
	"queries_logged",
	"store_queries",
	"ring_dropped",
	"store_trimmed",
	"store_errors",
	"store_flusher_cpu_time_ns",
	"query_profiler_signal_overruns",
};

struct look {
	double at_s;
	int64_t metrics[METRICS], memory_bytes, file_bytes;
};

static sqlite3 *monitor;
static char trace[64];

static void read_metrics(int64_t values[METRICS])
{
	static sqlite3_stmt *stmt;

	if (!stmt)
		must(monitor,
		     sqlite3_prepare_v2(monitor, "SELECT metric, value FROM system.metrics", -1, &stmt, NULL),
		     "metrics");
	while (sqlite3_step(stmt) == SQLITE_ROW)
		for (int i = 0; i < METRICS; i++)
			if (!strcmp(names[i], (const char *)sqlite3_column_text(stmt, 0)))
				values[i] = sqlite3_column_int64(stmt, 1);
	must(monitor, sqlite3_reset(stmt), "metrics");
}

/* Resident or swapped out. Pages of files do not count, because the kernel loads and drops them as it
 * likes. */
static int64_t memory_bytes(void)
{
	static const char *const parts[] = { "RssAnon:", "RssShmem:", "VmSwap:" };
	FILE *status = fopen("/proc/self/status", "re");
	long long sum = 0, kib;
	char line[128];

	while (status && fgets(line, sizeof(line), status))
		for (int i = 0; i < 3; i++)
			if (!strncmp(line, parts[i], strlen(parts[i])) &&
			    sscanf(line + strlen(parts[i]), "%lld", &kib) == 1)
				sum += kib * 1024;
	if (status)
		fclose(status);
	return sum;
}

static int64_t file_bytes(void)
{
	static const char *const suffixes[] = { "", "-wal" };
	int64_t sum = 0;

	for (int i = 0; i < 2; i++) {
		char path[80];
		struct stat file;

		snprintf(path, sizeof(path), "%s%s", trace, suffixes[i]);
		if (!stat(path, &file))
			sum += file.st_size;
	}
	return sum;
}

static struct look look(double start_s)
{
	struct look look = { .at_s = now_s() - start_s,
		             .memory_bytes = memory_bytes(),
		             .file_bytes = file_bytes() };

	read_metrics(look.metrics);
	return look;
}

static void print(const struct look *look)
{
	printf("%6.0f s  %9lld queries  %10lld samples, %10lld stored  memory %8.2f MiB  file %6.2f MiB\n",
	       look->at_s, (long long)atomic_load(&queries), (long long)look->metrics[SAMPLES],
	       (long long)look->metrics[STORED], (double)look->memory_bytes / 1048576,
	       (double)look->file_bytes / 1048576);
	fflush(stdout);
}

/* --- a plain table ---------------------------------------------------------------------------- */

static void insert_plain(sqlite3 *db, sqlite3_stmt *insert, int64_t first, int count)
{
	must(db, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), "begin");
	for (int64_t i = first; i < first + count; i++) {
		const int64_t row[] = { 1700000000000000000 + i * 125000,
			                i % 8,
			                i / 216,
			                i * 7919 % 2500,
			                i % 2,
			                1,
			                0,
			                i % 1000,
			                0,
			                0,
			                12345 + i % 10,
			                1000000 + i % 1000,
			                1234,
			                0 };

		for (int column = 0; column < (int)(sizeof(row) / sizeof(*row)); column++)
			sqlite3_bind_int64(insert, column + 1, row[column]);
		must(db, sqlite3_step(insert), "insert");
		sqlite3_reset(insert);
	}
	must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), "commit");
}

/* CPU time per row of inserting it, and removing it when the table is full. */
static double measure_plain(const char *folder)
{
	sqlite3_stmt *insert, *remove;
	char path[80];
	double spent = 0;
	int64_t rows = 0;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/plain.db", folder);
	must(NULL, sqlite3_open(path, &db), path);
	must(db,
	     sqlite3_exec(db,
	                  "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA secure_delete = OFF;"
	                  "PRAGMA wal_autocheckpoint = 512; CREATE TABLE plain (a INTEGER PRIMARY KEY,"
	                  "b, c, d, e, f, g, h, i, j, k, l, m, n)",
	                  NULL, NULL, NULL),
	     "plain");
	must(db,
	     sqlite3_prepare_v2(db, "INSERT INTO plain VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1,
	                        &insert, NULL),
	     "insert");
	must(db,
	     sqlite3_prepare_v2(
		     db, "DELETE FROM plain WHERE a < (SELECT a FROM plain ORDER BY a LIMIT 1 OFFSET ?)", -1,
		     &remove, NULL),
	     "remove");
	for (; rows < PLAIN_KEPT; rows += PLAIN_ROWS)
		insert_plain(db, insert, rows, PLAIN_ROWS);
	sqlite3_bind_int(remove, 1, PLAIN_ROWS);
	for (int round = 0; round < PLAIN_ROUNDS; round++, rows += PLAIN_ROWS) {
		pause_ns(LOOK_MS * 1000000); /* meanwhile other programs use the caches */
		spent -= (double)cpu_ns();
		insert_plain(db, insert, rows, PLAIN_ROWS);
		must(db, sqlite3_step(remove), "remove");
		sqlite3_reset(remove);
		spent += (double)cpu_ns();
	}
	sqlite3_finalize(insert);
	sqlite3_finalize(remove);
	must(NULL, sqlite3_close(db), "close");
	return spent / PLAIN_ROUNDS / PLAIN_ROWS;
}

/* --- the figures ------------------------------------------------------------------------------ */

static bool all_hold = true;

static void figure(const char *what, double value, double least, double most, const char *unit)
{
	bool holds = value >= least && value <= most;

	printf("%-44s %14.3f  %.3f to %.3f %s%s\n", what, value, least, most, unit, holds ? "" : "  FAILED");
	all_hold &= holds;
}

static double grown(const struct look *from, const struct look *to, int metric)
{
	return (double)(to->metrics[metric] - from->metrics[metric]);
}

static void judge(const struct look *first, const struct look *last, double least_mib, double most_mib,
                  int64_t most_file, double plain)
{
	const int64_t *m = last->metrics;
	int64_t outcomes = 0;

	for (int i = SAMPLES; i <= REENTERED; i++)
		outcomes += m[i];
	double flusher = grown(first, last, FLUSHER_CPU) / grown(first, last, STORED);
	double periods = grown(first, last, SAMPLES) + grown(first, last, OVERRUNS);
	double base = (double)first->memory_bytes / 1048576;

	printf("%.0f samples for %.0f periods a second and thread\n",
	       grown(first, last, SAMPLES) / (last->at_s - first->at_s) / THREADS,
	       periods / (last->at_s - first->at_s) / THREADS);
	figure("memory at least, against the first", least_mib - base, -MEMORY_BYTES / 1048576.0, 0, "MiB");
	figure("memory at most, against the first", most_mib - base, 0, MEMORY_BYTES / 1048576.0, "MiB");
	figure("file and WAL at most", (double)most_file / 1048576, 0, FILE_BYTES / 1048576.0, "MiB");
	printf("the flusher's CPU time a sample: %.0f ns (budget %.0f); a plain table's a row: %.0f ns\n",
	       flusher, FLUSHER_NS, plain);
	figure("the flusher's CPU time, of a plain table's", flusher / plain, 0, FLUSHER_PLAIN, "");
	figure("signals without an outcome", (double)(m[RUNS] + m[TAKEN] - outcomes), 0, 0, "");
	figure("samples not stored", (double)(m[SAMPLES] - m[STORED]), 0, 0, "");
	figure("logged queries not stored", (double)(m[LOGGED] - m[STORED_QUERIES]), 0, 0, "");
	figure("samples and queries refused or lost", (double)(m[DROPPED] + m[RING_DROPPED] + m[LOST]), 0, 0,
	       "");
	figure("errors of the store", (double)m[ERRORS], 0, 0, "");
	printf("%lld samples were trimmed\n", (long long)m[TRIMMED]);
}

int main(int argc, char **argv)
{
	double seconds = 3600, every = 60, settled_s, printed_s = 0, start, least = 0, most = 0;
	const struct test_option options[] = { { "--seconds", "S", .number = &seconds, .least = 1 },
		                               { "--print", "S", .number = &every, .least = 0 },
		                               { "--naps", "N", .number = &naps, .least = 1 } };
	char folder[] = "/tmp/qp-soak-XXXXXX", settings[320];
	struct look first = { 0 }, last;
	int64_t most_file = 0;
	pthread_t threads[THREADS];

	read_options(argc, argv, options, sizeof(options) / sizeof(*options));
	settled_s = seconds < 120 ? seconds / 4 : 60;
	/* With several arenas, starting and ending threads change the memory by 128 KiB each. */
	mallopt(M_ARENA_MAX, 1);
	seed = test_seed(1);
	if (!mkdtemp(folder))
		return 2;
	snprintf(trace, sizeof(trace), "%s/soak.trace", folder);
	snprintf(settings, sizeof(settings),
	         "PRAGMA query_profiler_cpu_time_period_ns = 0; PRAGMA trace_log_path = '%s';"
	         "PRAGMA trace_log_max_bytes = %d; PRAGMA query_profiler_max_overhead_percent = 0;"
	         "PRAGMA query_profiler_max_threads = 0",
	         trace, FILE_BYTES);
	monitor = open_connection(settings);
	open_many();
	start = now_s();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, live_on, (void *)(intptr_t)(i + 1)))
			return 2;
	do {
		pause_ns(LOOK_MS * 1000000);
		last = look(start);
		most_file = last.file_bytes > most_file ? last.file_bytes : most_file;
		if (last.at_s >= settled_s) {
			double mib = (double)last.memory_bytes / 1048576;
			if (first.at_s == 0) {
				first = last;
				least = most = mib;
			}
			least = mib < least ? mib : least;
			most = mib > most ? mib : most;
		}
		if (last.at_s >= printed_s) {
			print(&last);
			printed_s += every;
		}
	} while (last.at_s < seconds);
	double plain = measure_plain(folder);
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Reading stores the ring's content first. */
	must(monitor,
	     sqlite3_exec(monitor, "SELECT count(*) FROM system.trace_log LIMIT 1", NULL, NULL, NULL), "end");
	last = look(start);
	print(&last);
	judge(&first, &last, least, most, most_file, plain);
	sqlite3_close(monitor);
	snprintf(settings, sizeof(settings), "rm -rf '%s'", folder);
	if (system(settings))
		fprintf(stderr, "%s stays behind\n", folder);
	return !all_hold;
}
