/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost that finding the running opcode adds to unwinding the same stack. Samples of SQLite's statements,
 * at whatever opcode a timer interrupts them, alternate with and without it.
 *
 *   tools/bench --all opcode
 *
 * Hot: the fastest of short loops on each stack; the median of the stacks. Behind the signal: each sample
 * is taken once, as in the library, with its cache lines as cold as the signal and the program leave them.
 * Evicted: the program has written more memory than the caches hold.
 */
#include <signal.h>
#define SQLITE_CORE /* finds its functions by their names */
#include <sqlite3ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/clock.h"
#include "handler/opcode.h"
#include "handler/unwind/unwind.h"
#include "queryprof.h"
#include "timers/threads.h"
#include "sqlite/opcode/locations.h"

#define PERIOD_NS 200000 /* of wall time, because a CPU timer fires only in the kernel's ticks */
#define SAMPLES_MAX 40000
#define ROUNDS 12
#define HOT_EVERY                                                                                            \
	51 /* this and the next are odd, so that the next sample finds the opcode in half of the cases */
#define HOT_REPEATS 5
#define HOT_CALLS 200
#define EVICTED_EVERY 75
#define EVICT_BYTES (96u << 20) /* more than a last-level cache's share */

static const sqlite3_api_routines *sqlite;
static struct thread *thread;
static struct query_counts counts;
static struct query_tag tag = { .counts = &counts };
static volatile sig_atomic_t is_stepping;
static uint64_t trace[STACK_FRAMES_MAX];
static char *evict_memory;
static long samples;

/* Times without and with finding the opcode. */
struct pair {
	const char *name;
	double ns[2][SAMPLES_MAX];
	size_t count[2];
};
static struct pair hot = { .name = "hot" }, behind = { .name = "behind the signal" },
		   evicted = { .name = "evicted" };

__attribute__((noinline)) static bool take(const void *ucontext, bool finds)
{
	const struct unwind_result result =
		unwind_addresses(ucontext, &thread->stack, thread_memo(thread), trace, STACK_FRAMES_MAX);

	return finds ? opcode_running(thread, &tag, ucontext, &result) != OPCODE_UNKNOWN : result.depth > 0;
}

static void add(struct pair *pair, bool finds, double ns)
{
	if (pair->count[finds] < SAMPLES_MAX)
		pair->ns[finds][pair->count[finds]++] = ns;
}

static void measure_hot(const void *ucontext)
{
	double least[2] = { 1e30, 1e30 };

	for (int repeat = 0; repeat < HOT_REPEATS; repeat++)
		for (int finds = 0; finds < 2; finds++) {
			take(ucontext, finds);
			const long start = (long)now_ns();
			for (int call = 0; call < HOT_CALLS; call++)
				take(ucontext, finds);
			const double each = (double)((long)now_ns() - start) / HOT_CALLS;
			least[finds] = each < least[finds] ? each : least[finds];
		}
	add(&hot, false, least[false]);
	add(&hot, true, least[true]);
}

static void measure_evicted(const void *ucontext)
{
	for (int finds = 0; finds < 2; finds++) {
		for (size_t i = 0; i < EVICT_BYTES; i += 64)
			evict_memory[i]++;
		(long)now_ns(); /* loads the clock's own code before the measurement */
		const long start = (long)now_ns();
		take(ucontext, finds);
		add(&evicted, finds, (double)((long)now_ns() - start));
	}
}

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
	const bool finds = samples % 2;

	(void)number, (void)info;
	if (!is_stepping)
		return;
	const long start = (long)now_ns();
	take(ucontext, finds);
	const long took = (long)now_ns() - start;
	/* Only samples that have an opcode count. */
	if (!take(ucontext, true))
		return;
	add(&behind, finds, (double)took);
	if (samples % HOT_EVERY == 0)
		measure_hot(ucontext);
	if (samples % EVICTED_EVERY == 0)
		measure_evicted(ucontext);
	samples++;
}

static __attribute__((noinline)) void run(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite->prepare_v2(db, sql, -1, &stmt, NULL)) {
		fprintf(stderr, "%s: %s\n", sql, sqlite->errmsg(db));
		exit(1);
	}
	counts.statement = stmt;
	tag.frame = (uintptr_t)__builtin_frame_address(0);
	is_stepping = 1;
	while (sqlite->step(stmt) == SQLITE_ROW)
		;
	is_stepping = 0;
	sqlite->finalize(stmt);
}

static const char *const queries[] = {
	"SELECT b, count(*), max(c) FROM t WHERE c LIKE '%AB%' GROUP BY b ORDER BY 3",
	"SELECT c FROM t ORDER BY c DESC",
	"SELECT sum(length(hex(c))) FROM t WHERE b BETWEEN 10 AND 900",
	"SELECT count(*) FROM t AS x JOIN t AS y ON x.a = y.a WHERE x.c <> y.c",
	"SELECT count(*) FROM t AS x JOIN t AS y ON x.b = y.b WHERE y.a < 200",
	"UPDATE t SET b = b + 1 WHERE a % 3 = 0",
};

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The mean of the middle half: a busy machine moves it as little as the median, and it is finer. */
static double middle(struct pair *pair, bool finds)
{
	const size_t count = pair->count[finds], from = count / 4, used = count - 2 * from;
	double sum = 0;

	qsort(pair->ns[finds], count, sizeof(double), compare_doubles);
	for (size_t i = from; i < from + used; i++)
		sum += pair->ns[finds][i];
	return used ? sum / (double)used : 0;
}

static void print(struct pair *pair)
{
	const double without = middle(pair, false), with = middle(pair, true);

	printf("  %-18s %8.1f ns with the opcode, %8.1f without: %6.1f ns more, x %.3f\n", pair->name, with,
	       without, with - without, with / without);
}

/* SQLite passes its routines to extensions. Calls through them bypass the library's wrappers. */
static int take_routines(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error;
	sqlite = api;
	return SQLITE_OK;
}

static sqlite3 *open_database(void)
{
	sqlite3 *db = NULL;

	if (sqlite3_auto_extension((void (*)(void))take_routines) || sqlite3_open(":memory:", &db))
		return NULL;
	sqlite3_reset_auto_extension();
	sqlite3_exec(
		db,
		"CREATE TABLE t (a INTEGER PRIMARY KEY, b, c TEXT);"
		"WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 50000)"
		" INSERT INTO t SELECT x, x % 1000, hex(randomblob(20)) FROM r; CREATE INDEX tb ON t (b)",
		NULL, NULL, NULL);
	return db;
}

int main(void)
{
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
	const struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	sqlite3 *db = open_database();
	const struct host_library *host;
	char *error = NULL;
	timer_t timer;

	evict_memory = malloc(EVICT_BYTES);
	if (!db || !evict_memory || qp_init(NULL) || !(host = host_adopt(sqlite, &error)) ||
	    !(thread = sampler_thread()))
		return fprintf(stderr, "%s\n", error ? error : qp_error()), 2;
	opcode_library_learn(host, thread);
	if (!opcode_library(host))
		return fprintf(stderr, "the opcodes of this SQLite are not known\n"), 2;
	counts.opcodes = &opcode_library(host)->locations;
	sigaction(SIGPROF, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &period, NULL))
		return perror("timer"), 2;
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
			run(db, queries[i]);
	timer_delete(timer);
	printf("a sample of a statement, SQLite %s\n", sqlite->libversion());
	print(&hot);
	print(&behind);
	print(&evicted);
	printf("  samples %ld\n", samples);
	sqlite->close(db);
	qp_shutdown();
	return 0;
}
