/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All at once, for some seconds: threads that query, come and go; modules that are loaded, query
 * and are unloaded; forks and execs; settings that change, down to periods of 100 us; a ring of 64
 * KiB; a trace file that others lock, rename, remove and put elsewhere; a full disk, and one that
 * hangs; a clock that is set. What must hold whatever happens is looked at all along:
 *
 * - signals add up: none has two outcomes, and all but those in flight have one;
 * - the statements that the program counts are those that statement_stats counts;
 * - queries end while the disk of the trace file hangs;
 * - no counter goes back, and at the end what is not in a trace file was reported as lost;
 * - every trace file that is left is whole.
 *
 *   chaos PLUGIN [--seconds N]
 *
 * The actors take turns by random numbers of the printed seed. What the machine makes of them
 * is not the same in each run.
 */
#include "../options.h"
#include "../seed.h"
#include "../watch/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <queryprof.h>

#define WORKERS 4
#define PLUGIN WORKERS /* counts as one */
#define THREADS_MAX 32 /* alive at once, all of them */

extern char **environ;

static const char *program;
static char trace[2][200];
static uint64_t seed;
static atomic_bool over;
static atomic_int failures;

#define CHECK(condition, ...)                                                                                \
	do {                                                                                                 \
		if (!(condition) && atomic_fetch_add(&failures, 1) < 20) {                                   \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                      \
			fprintf(stderr, __VA_ARGS__);                                                        \
			fprintf(stderr, "\n");                                                               \
		}                                                                                            \
	} while (0)

/* Each actor has its own. */
static unsigned random_below(uint64_t *state, unsigned limit)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (unsigned)(*state >> 33) % limit;
}

static void pause_us(unsigned us)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

/* --- the clock ----------------------------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__ /* which has this function itself */
static _Atomic int64_t clock_offset_s;

/* The library asks this one. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_REALTIME)
		time->tv_sec += atomic_load(&clock_offset_s);
	return rc;
}

static void set_clock(int64_t offset_s)
{
	atomic_store(&clock_offset_s, offset_s);
}
#else
static void set_clock(int64_t offset_s)
{
	(void)offset_s;
}
#endif

/* --- those who query -------------------------------------------------------------------------- */

/* What the program knows of its runs: written before one begins, and after it has ended. */
static struct {
	_Atomic int64_t begun, ended;
} counts[WORKERS + 1];

static sqlite3 *open_connection(uint64_t *state)
{
	static const int periods_us[] = { 100, 1000, 10000 };
	char sql[160];
	sqlite3 *db = NULL;

	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK, "%s", sqlite3_errmsg(db));
	snprintf(sql, sizeof sql,
	         "PRAGMA query_profiler_cpu_time_period_ns = %d000; "
	         "PRAGMA query_profiler_real_time_period_ns = %d000",
	         periods_us[random_below(state, 3)], periods_us[random_below(state, 3)]);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	return db;
}

static void run(int worker, sqlite3_stmt *stmt, uint64_t *state)
{
	static const int lengths[] = { 1, 10, 300, 20000 };
	int rows = (int)random_below(state, 20), rc = SQLITE_ROW;

	sqlite3_bind_int(stmt, 1, lengths[random_below(state, 4)]);
	atomic_fetch_add(&counts[worker].begun, 1);
	while (rows-- >= 0 && rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	CHECK(rc == SQLITE_ROW || rc == SQLITE_DONE, "%d", rc);
	sqlite3_reset(stmt);
	atomic_fetch_add(&counts[worker].ended, 1);
}

/* The life of a connection. */
static void *query(void *context)
{
	int worker = (int)(intptr_t)context % WORKERS;
	uint64_t state = seed ^ (uint64_t)(intptr_t)context * 0x9E3779B97F4A7C15u;
	sqlite3 *db = open_connection(&state);
	sqlite3_stmt *stmt = NULL;
	char sql[160];

	snprintf(sql, sizeof sql,
	         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ?) "
	         "SELECT max(x) AS w%d FROM c GROUP BY x %% 7",
	         worker);
	CHECK(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
	for (unsigned left = 1 + random_below(&state, 50); left && !atomic_load(&over); left--)
		run(worker, stmt, &state);
	/* A zombie, now and then. */
	if (random_below(&state, 2))
		sqlite3_close_v2(db);
	sqlite3_finalize(stmt);
	if (!random_below(&state, 2))
		pause_us(random_below(&state, 3000));
	return NULL;
}

/* A thread for each connection, or one for many. */
static void *query_on(void *context)
{
	uint64_t state = seed + (uint64_t)(intptr_t)context;
	intptr_t turn = (intptr_t)context;

	while (!atomic_load(&over)) {
		pthread_t thread;

		turn += WORKERS;
		if (random_below(&state, 2) || pthread_create(&thread, NULL, query, (void *)turn))
			query((void *)turn);
		else
			pthread_join(thread, NULL);
	}
	return NULL;
}

/* --- the disk ---------------------------------------------------------------------------------- */

#define HANG_RUNS 20       /* of the host, while a write or a sync of the flusher hangs */
#define HANG_MOST_MS 30000 /* the host waits for the disk */

static atomic_bool disk_hangs, is_hanging, host_waited;
static atomic_int hangs;

static int64_t runs_ended(void)
{
	int64_t sum = 0;

	for (int i = 0; i < WORKERS; i++)
		sum += atomic_load(&counts[i].ended);
	return sum;
}

/* Prints nothing: the descriptors of the library's threads are their own. */
static void hang(void)
{
	int64_t until = runs_ended() + HANG_RUNS;
	char name[16] = "";
	int ms = 0;

	if (!atomic_load(&disk_hangs) || pthread_getname_np(pthread_self(), name, sizeof name) ||
	    strcmp(name, "queryprof") != 0)
		return;
	atomic_fetch_add(&hangs, 1);
	atomic_store(&is_hanging, true);
	for (; ms < HANG_MOST_MS && runs_ended() < until && !atomic_load(&over); ms++)
		pause_us(1000);
	if (ms == HANG_MOST_MS)
		atomic_store(&host_waited, true);
	atomic_store(&is_hanging, false);
}

/* The library asks these. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
	hang();
	return (int)syscall(SYS_fdatasync, fd);
}

#ifndef __SANITIZE_ADDRESS__ /* which has this function itself */
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
	hang();
	return syscall(SYS_pwrite64, fd, bytes, size, at);
}
#endif

/* --- those who disturb --------------------------------------------------------------------------- */

static void load_and_query(uint64_t *state)
{
	void *handle = dlopen(CHAOS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
	int (*query_once)(sqlite3 *) = NULL;
	sqlite3 *db = open_connection(state);

	CHECK(handle != NULL, "%s", dlerror());
	if (handle)
		*(void **)&query_once = dlsym(handle, "plugin_query");
	if (query_once) {
		atomic_fetch_add(&counts[PLUGIN].begun, 1);
		CHECK(query_once(db) == 1, "the plugin's query");
		atomic_fetch_add(&counts[PLUGIN].ended, 1);
	}
	sqlite3_close(db);
	if (handle)
		dlclose(handle);
}

static void wait_for(pid_t child, const char *what)
{
	int status = -1;

	CHECK(child > 0, "%s", what);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	CHECK(status == 0, "%s: status 0x%x", what, (unsigned)status);
}

static void fork_and_end(uint64_t *state)
{
	bool executes = random_below(state, 2);
	pid_t child = fork();

	if (!child) {
		if (executes)
			execl("/bin/true", "true", (char *)NULL);
		_exit(executes);
	}
	wait_for(child, executes ? "exec" : "fork");
}

/* Another process: this one's locks would go with a descriptor of the file. */
static void run_self(const char *what, const char *path, unsigned ms)
{
	char number[20];
	char *arguments[] = { (char *)program, (char *)what, (char *)path, number, NULL };
	pid_t child = -1;

	snprintf(number, sizeof number, "%u", ms);
	if (posix_spawn(&child, program, NULL, NULL, arguments, environ))
		child = -1;
	wait_for(child, what);
}

/* One at a time: the limit is to be again what it was. */
static void fill_disk(unsigned ms)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct rlimit before, full;

	pthread_mutex_lock(&lock);
	getrlimit(RLIMIT_FSIZE, &before);
	full = (struct rlimit){ 4096, before.rlim_max };
	setrlimit(RLIMIT_FSIZE, &full);
	pause_us(ms * 1000);
	setrlimit(RLIMIT_FSIZE, &before);
	pthread_mutex_unlock(&lock);
}

static void hang_disk(unsigned ms)
{
	atomic_store(&disk_hangs, true);
	pause_us(ms * 1000);
	atomic_store(&disk_hangs, false);
}

static void replace_file(uint64_t *state, const char *path)
{
	static atomic_int number;
	char other[240], companion[240];
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	snprintf(other, sizeof other, "%s.old%d", path, atomic_fetch_add(&number, 1));
	if (random_below(state, 2)) {
		rename(path, other);
		return;
	}
	for (int i = 0; i < 3; i++) {
		snprintf(companion, sizeof companion, "%s%s", path, suffixes[i]);
		unlink(companion);
	}
}

static void change_setting(uint64_t *state)
{
	char value[20];

	switch (random_below(state, 3)) {
	case 0: qp_set(NULL, "trace_log_path", trace[random_below(state, 2)]); break;
	case 1:
		snprintf(value, sizeof value, "%u", 10 + random_below(state, 500));
		qp_set(NULL, "trace_log_flush_interval_ms", value);
		break;
	default: qp_set(NULL, "query_profiler_max_overhead_percent", random_below(state, 2) ? "0" : "2");
	}
}

static void *disturb(void *context)
{
	uint64_t state = seed * 31 + (uint64_t)(intptr_t)context;

	while (!atomic_load(&over)) {
		const char *path = trace[random_below(&state, 2)];

		switch (random_below(&state, 9)) {
		case 0: replace_file(&state, path); break;
		case 1: run_self("--lock", path, random_below(&state, 200)); break;
		case 2: fill_disk(random_below(&state, 50)); break;
		case 3: set_clock((int64_t)random_below(&state, 7200) - 3600); break;
		case 4: change_setting(&state); break;
		case 5: fork_and_end(&state); break;
		case 6: hang_disk(random_below(&state, 200)); break;
		default: load_and_query(&state);
		}
		pause_us(random_below(&state, 20000));
	}
	return NULL;
}

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
	memset(values, 0, METRICS * sizeof *values);
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
	CHECK(first[STORED] <= second[SAMPLES], "%lld", (long long)first[STORED]);
	for (int i = 0; i < METRICS; i++)
		CHECK(first[i] >= last[i] && second[i] >= first[i], "%s", names[i]);
	memcpy(last, second, sizeof last);
}

/* The reader is one of the host's connections, too. */
static int64_t counted(sqlite3 *db, int worker)
{
	char sql[160];

	snprintf(sql, sizeof sql,
	         worker == PLUGIN
	                 ? "SELECT total(calls) FROM system.statement_stats WHERE query LIKE '%%AS plugin'"
	                 : "SELECT total(calls) FROM system.statement_stats WHERE query LIKE '%% AS w%d %%'",
	         worker);
	return host_int(db, sql);
}

static void check_statements(sqlite3 *db)
{
	for (int i = 0; i <= WORKERS; i++) {
		int64_t ended = atomic_load(&counts[i].ended), calls = counted(db, i),
			begun = atomic_load(&counts[i].begun);

		CHECK(ended <= calls && calls <= begun, "worker %d: %lld ended, %lld are counted, %lld begun",
		      i, (long long)ended, (long long)calls, (long long)begun);
	}
}

static void check_end(void)
{
	int64_t values[METRICS], missing, lost;

	set_clock(0);
	for (int i = 0; i < 100 && qp_flush(5000); i++)
		pause_us(100000);
	read_metrics(values);
	CHECK(values[RUNS] + values[TAKEN] == outcomes(values), "%lld signals, %lld outcomes",
	      (long long)(values[RUNS] + values[TAKEN]), (long long)outcomes(values));
	missing = values[SAMPLES] - values[STORED] + values[QUERIES] - values[STORED_QUERIES];
	/* samples_dropped are no samples. */
	lost = values[LOST] + values[RING_DROPPED] - values[DROPPED];
	CHECK(missing <= lost, "%lld samples and queries are missing, %lld reported as lost",
	      (long long)missing, (long long)lost);
	printf("%lld signals, %lld samples, %lld of them stored; %lld queries logged, %lld stored; %lld "
	       "lost, "
	       "%lld refused by the ring; the disk hung %d times\n",
	       (long long)values[RUNS], (long long)values[SAMPLES], (long long)values[STORED],
	       (long long)values[QUERIES], (long long)values[STORED_QUERIES], (long long)values[LOST],
	       (long long)values[RING_DROPPED], atomic_load(&hangs));
	CHECK(values[SAMPLES] > 0 && values[STORED] > 0, "nothing was sampled");
}

static void check_files(void)
{
	char pattern[200];
	glob_t files;

	snprintf(pattern, sizeof pattern, "%s/trace*", host_directory());
	if (glob(pattern, 0, NULL, &files))
		return;
	for (size_t i = 0; i < files.gl_pathc; i++)
		if (!strstr(files.gl_pathv[i], "-wal") && !strstr(files.gl_pathv[i], "-shm"))
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

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL))
		return strcmp(what, "--lock") != 0;
	if (!strcmp(what, "--lock")) {
		if (!sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL))
			pause_us(ms * 1000);
		return 0;
	}
	sqlite3_busy_timeout(db, 10000);
	rc = sqlite3_exec(db, "PRAGMA integrity_check", take_word, &is_whole, NULL);
	if (!is_whole)
		fprintf(stderr, "%s: %d, %s\n", path, rc, sqlite3_errmsg(db));
	return !is_whole;
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS + 2];
	double seconds = 3;
	const struct test_option options[] = { { "--seconds", "S", .number = &seconds, .least = 1 } };
	struct timespec start, now;
	sqlite3 *reader;

	if (argc > 3 && (!strcmp(argv[1], "--lock") || !strcmp(argv[1], "--whole")))
		return be_other(argv[1], argv[2], (unsigned)atoi(argv[3]));
	read_options(argc, argv, options, 1);
	program = "/proc/self/exe";
	seed = test_seed(0x5EED);
	signal(SIGXFSZ, SIG_IGN);
	setenv("QUERYPROF_TRACE_LOG_RING_BYTES", "65536", 1);
	host_begin("loaded");
	for (int i = 0; i < 2; i++)
		snprintf(trace[i], sizeof trace[i], "%s/trace%s", host_directory(), i ? "2" : "");
	reader = host_open("");
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
	check_files();
	return atomic_load(&failures) != 0;
}
