/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at the same time, for some seconds: threads that query, start and end; modules that are loaded,
 * query and are unloaded; forks and execs; settings that change, down to periods of 100 us; a ring of 64 KiB;
 * a trace file that others lock, rename, remove and replace; a full disk, and a disk that hangs. The program
 * checks these invariants all the time:
 *
 * - signals add up: each has at most one outcome, and all but the signals in flight have one;
 * - statement_stats counts the same statements as the program;
 * - queries end while the disk of the trace file hangs;
 * - no counter goes back, and at the end everything missing in a trace file was reported as lost;
 * - every remaining trace file is whole;
 * - from ten seconds on, each actor has had its effect.
 *
 *   chaos [--seconds N] [--recorded]      --recorded: as under `record`, not loaded as an extension
 *
 * Random numbers of the printed seed decide the actors' turns. The result still differs between runs, because
 * the machine schedules them. Under ThreadSanitizer nothing forks.
 */
#include "chaos.h"

#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <queryprof.h>

#include "../lib/options.h"
#include "../lib/seed.h"

#define THREADS_MAX 32 /* the most that are alive at the same time */

char trace[2][200];
uint64_t chaos_seed;
atomic_bool over;
atomic_int failures;

static const char *const deed_names[DEEDS] = {
	"zombies",       "short threads",      "plugins loaded",
	"forks",         "forks with a query", "execs",
	"locks taken",   "size limits",        "writes of a full disk",
	"hangs",         "settings changed",   "files renamed",
	"files removed",
};

/* --- what must hold -------------------------------------------------------------------------- */

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
	QUERIES,
	STORED_QUERIES,
	RING_DROPPED,
	METRICS
};
static const char *const names[METRICS] = {
	"query_profiler_runs", "samples_taken",  "samples",         "samples_dropped",   "signals_idle",
	"signals_asked",       "signals_late",   "signals_foreign", "signals_reentered", "store_samples",
	"store_lost",          "queries_logged", "store_queries",   "ring_dropped",
};

static int take_metric(void *context, const qp_metric *metric)
{
	int64_t *values = context;

	for (int i = 0; i < METRICS; i++)
		if (!strcmp(names[i], metric->name))
			values[i] = metric->value;
	return 0;
}

static void read_metrics(int64_t values[METRICS])
{
	memset(values, 0, METRICS * sizeof(*values));
	qp_metrics(take_metric, values);
}

static int64_t outcomes(const int64_t values[METRICS])
{
	int64_t sum = 0;

	for (int i = SAMPLES; i <= REENTERED; i++)
		sum += values[i];
	return sum;
}

static void check_ledger(void)
{
	static int64_t last[METRICS];
	int64_t first[METRICS], second[METRICS];

	read_metrics(first);
	read_metrics(second);
	CHECK(outcomes(first) <= second[RUNS] + second[TAKEN], "%lld", (long long)outcomes(first));
	CHECK(first[RUNS] + first[TAKEN] <= outcomes(second) + THREADS_MAX, "%lld, %lld",
	      (long long)(first[RUNS] + first[TAKEN]), (long long)outcomes(second));
	/* A handler counts its sample after it has committed the record. */
	CHECK(first[STORED] <= second[SAMPLES] + THREADS_MAX, "%lld, %lld", (long long)first[STORED],
	      (long long)second[SAMPLES]);
	for (int i = 0; i < METRICS; i++)
		CHECK(first[i] >= last[i] && second[i] >= first[i], "%s", names[i]);
	memcpy(last, second, sizeof(last));
}

/* The reader also uses a connection of the host. */
static int64_t counted(sqlite3 *db, int worker)
{
	char sql[160];

	snprintf(sql, sizeof(sql),
	         worker == PLUGIN
	                 ? "SELECT total(calls) FROM system.statement_stats WHERE query LIKE '%%AS plugin'"
	                 : "SELECT total(calls) FROM system.statement_stats WHERE query LIKE '%% AS w%d %%'",
	         worker);
	return host_int(db, sql);
}

/* `db` is NULL under `record`, because a connection then has no tables of queryprof. */
static void check_statements(sqlite3 *db)
{
	enter_sqlite();
	for (int i = 0; db && i <= WORKERS; i++) {
		int64_t ended = atomic_load(&counts[i].ended), calls = counted(db, i),
			begun = atomic_load(&counts[i].begun);

		CHECK(ended <= calls && calls <= begun, "worker %d: %lld ended, %lld are counted, %lld begun",
		      i, (long long)ended, (long long)calls, (long long)begun);
	}
	leave_sqlite();
}

static void check_deeds(bool must_be_done, bool has_disk)
{
	for (int i = 0; i < DEEDS; i++) {
		bool is_possible =
			(has_disk || (i != HUNG && i != FULL)) && (CAN_FORK || i < FORKED || i > EXECUTED);

		printf("%s%d %s", i ? ", " : "", atomic_load(&deeds[i]), deed_names[i]);
		CHECK(!must_be_done || !is_possible || atomic_load(&deeds[i]) > 0, "no %s", deed_names[i]);
	}
	printf("\n");
}

static void check_end(void)
{
	int64_t values[METRICS], missing, lost;

	for (int i = 0; i < 100 && qp_flush(5000); i++)
		pause_us(100000);
	read_metrics(values);
	CHECK(values[RUNS] + values[TAKEN] == outcomes(values), "%lld signals, %lld outcomes",
	      (long long)(values[RUNS] + values[TAKEN]), (long long)outcomes(values));
	missing = values[SAMPLES] - values[STORED] + values[QUERIES] - values[STORED_QUERIES];
	/* `samples` does not include samples_dropped. */
	lost = values[LOST] + values[RING_DROPPED] - values[DROPPED];
	CHECK(missing <= lost, "%lld samples and queries are missing, %lld reported as lost",
	      (long long)missing, (long long)lost);
	printf("%lld signals, %lld samples, %lld of them stored; %lld queries logged, %lld stored; %lld "
	       "lost, %lld refused by the ring\n",
	       (long long)values[RUNS], (long long)values[SAMPLES], (long long)values[STORED],
	       (long long)values[QUERIES], (long long)values[STORED_QUERIES], (long long)values[LOST],
	       (long long)values[RING_DROPPED]);
	CHECK(values[SAMPLES] > 0, "nothing was sampled");
}

/* On a busy machine a short run may have lost all its samples. */
static void check_goes_on(void)
{
	sqlite3 *db = host_open("");
	int64_t values[METRICS], before;

	read_metrics(values);
	before = values[STORED];
	for (int i = 0; i < 1000 && values[STORED] <= before; i++) {
		host_exec(db,
		          "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 100000) "
		          "SELECT max(i) FROM t");
		qp_flush(5000);
		read_metrics(values);
	}
	CHECK(values[STORED] > before, "no sample is stored after all is over");
	sqlite3_close(db);
}

/* A file renamed during a checkpoint lacks its log, which contains the rest. No SQLite database is whole
 * then. A new file has a journal until it has its log. */
static bool is_whole_by_itself(const char *path)
{
	return !strstr(path, "-wal") && !strstr(path, "-shm") && !strstr(path, "-journal") &&
	       !strstr(path, ".old");
}

static void check_files(void)
{
	char pattern[200];
	glob_t files;

	snprintf(pattern, sizeof(pattern), "%s/trace*", host_directory());
	if (glob(pattern, 0, NULL, &files))
		return;
	for (size_t i = 0; i < files.gl_pathc; i++)
		if (is_whole_by_itself(files.gl_pathv[i]))
			run_self("--whole", files.gl_pathv[i], 0);
	globfree(&files);
}

/* --- the other process ------------------------------------------------------------------------- */

static int take_word(void *context, int count, char **values, char **columns)
{
	(void)count, (void)columns;
	*(bool *)context = values[0] && !strcmp(values[0], "ok");
	return 0;
}

static int be_other(const char *what, const char *path, unsigned ms)
{
	bool is_whole = false;
	sqlite3 *db;
	int rc;

	rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
	if (!strcmp(what, "--lock")) {
		if (rc || sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL))
			return UNLOCKED;
		pause_us(ms * 1000);
		return 0;
	}
	if (rc)
		return 1;
	sqlite3_busy_timeout(db, 300000);
	rc = sqlite3_exec(db, "PRAGMA integrity_check", take_word, &is_whole, NULL);
	if (!is_whole)
		fprintf(stderr, "%s: %d, %s\n", path, rc, sqlite3_errmsg(db));
	return !is_whole;
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS + 2];
	double seconds = 3;
	bool is_recorded = false, has_disk;
	const struct test_option options[] = { { "--seconds", "S", .number = &seconds, .least = 1 },
		                               { "--recorded", .flag = &is_recorded } };
	struct timespec start, now;
	sqlite3 *reader;

	if (argc > 3 && (!strcmp(argv[1], "--lock") || !strcmp(argv[1], "--whole")))
		return be_other(argv[1], argv[2], (unsigned)atoi(argv[3]));
	read_options(argc, argv, options, 2);
	chaos_seed = test_seed(0x5EED);
	signal(SIGXFSZ, SIG_IGN);
	has_disk = disk_begin();
	if (!has_disk)
		printf("the disk is never full and never hangs: the kernel does not let this program answer "
		       "for it\n");
	setenv("QUERYPROF_TRACE_LOG_RING_BYTES", "65536", 1);
	host_begin(is_recorded ? "recorded" : "loaded");
	for (int i = 0; i < 2; i++)
		snprintf(trace[i], sizeof(trace[i]), "%s/trace%s", host_directory(), i ? "2" : "");
	reader = is_recorded ? NULL : host_open("");
	for (int i = 0; i < WORKERS + 2; i++)
		pthread_create(&threads[i], NULL, i < WORKERS ? query_on : disturb,
		               (void *)(intptr_t)(i + 1));
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &start);
	do {
		pause_us(50000);
		check_ledger();
		check_statements(reader);
		CHECK(!atomic_load(&host_waited), "no %d queries ended while the disk hung", HANG_RUNS);
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	} while (((double)(now.tv_sec - start.tv_sec) < seconds || atomic_load(&is_hanging)) &&
	         !atomic_load(&failures));
	atomic_store(&over, true);
	for (int i = 0; i < WORKERS + 2; i++)
		pthread_join(threads[i], NULL);
	check_statements(reader);
	sqlite3_close(reader);
	check_end();
	check_goes_on();
	check_files();
	check_deeds(seconds >= 10, has_disk);
	return atomic_load(&failures) != 0;
}
