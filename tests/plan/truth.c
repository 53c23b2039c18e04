/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the running opcode that the handler finds with the truth. test_builds.py builds a SQLite library
 * with each compiler; the library writes each opcode's address to a variable before it executes it, and NULL
 * before it goes to another.
 *
 * truth LIBRARY        prints the number of samples, equal, unknown and wrong opcodes, and the time
 *
 * If a library does not provide the truth, each opcode that the handler finds counts as equal.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/clock.h"
#include "handler/opcode.h"
#include "base/code_map.h"
#include "handler/unwind/unwind.h"
#include "queryprof.h"
#include "timers/threads.h"
#include "sqlite/opcode/locations.h"

#define PERIOD_NS 100000 /* of wall time, because a CPU timer fires only in the kernel's ticks */
#define MEASURED 50      /* one of so many samples; with more, the signals might leave the program no time */
#define ROUNDS 4
#define CALLS 400 /* per measurement, because reading the clock takes as long as forty */

static const sqlite3_api_routines *given;
static void *volatile *truth; /* in the library; NULL: it does not provide it */
static struct thread *thread;
static struct query_counts counts;
static struct query_tag tag = { .counts = &counts };
static const char *own; /* the statement's program */
static volatile sig_atomic_t is_stepping;
static struct {
	long samples, outside, between, equal, unknown, wrong, measured, ns;
} found;
static uint64_t trace[STACK_FRAMES_MAX];

/* The cost of reading the clock twice. */
static long clock_cost_ns(void)
{
	enum { PAIRS = 1000 };
	long sum = 0;

	for (int i = 0; i < PAIRS; i++) {
		sum -= (long)cpu_ns();
		sum += (long)cpu_ns();
	}
	return sum / PAIRS;
}

static bool is_inside(const struct unwind_result *result)
{
	for (int i = 0; i < result->depth; i++)
		if (trace[i] >= counts.opcodes->start && trace[i] < counts.opcodes->end)
			return true;
	return false;
}

static const void *statement_word(uint32_t offset)
{
	const void *word;

	memcpy(&word, (const char *)counts.statement + offset, sizeof(word));
	return word;
}

/* While a trigger runs, the statement executes the trigger's program, so the opcode belongs to that. */
static bool is_right(uint64_t opcode)
{
	const char *program = opcode >> 32 ? statement_word(counts.opcodes->a_op) : own;
	const uint32_t number = opcode >> 32 ? (uint32_t)(opcode >> 32) - 1 : (uint32_t)opcode;

	return program + number * counts.opcodes->op_bytes == *truth;
}

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
	struct unwind_result result;
	uint64_t opcode = OPCODE_UNKNOWN;

	(void)number, (void)info;
	if (!is_stepping)
		return;
	result = unwind_addresses(ucontext, &thread->stack, thread_memo(thread), trace, STACK_FRAMES_MAX);
	found.samples++;
	if (!is_inside(&result)) {
		found.outside++;
		return;
	}
	opcode = opcode_running(thread, &tag, ucontext, &result);
	if (found.samples % MEASURED == 0) {
		found.ns -= (long)cpu_ns();
		for (int i = 0; i < CALLS; i++)
			opcode = opcode_running(thread, &tag, ucontext, &result);
		found.ns += (long)cpu_ns();
		found.measured++;
	}
	if (truth && *truth == NULL)
		found.between++;
	else if (opcode == OPCODE_UNKNOWN || (!(opcode >> 32) && statement_word(counts.opcodes->frame)))
		found.unknown++;
	else if (!truth || is_right(opcode))
		found.equal++;
	else
		found.wrong++;
}

static __attribute__((noinline)) void run(sqlite3 *db, const char *sql)
{
	const sqlite3_api_routines *api = given;
	sqlite3_stmt *stmt = NULL;

	if (api->prepare_v2(db, sql, -1, &stmt, NULL)) {
		fprintf(stderr, "%s: %s\n", sql, api->errmsg(db));
		exit(1);
	}
	counts.statement = stmt;
	own = statement_word(counts.opcodes->a_op);
	tag.frame = (uintptr_t)__builtin_frame_address(0);
	is_stepping = 1;
	while (api->step(stmt) == SQLITE_ROW)
		;
	is_stepping = 0;
	api->finalize(stmt);
}

static const char *const queries[] = {
	"SELECT b, count(*), max(c) FROM t WHERE c LIKE '%AB%' GROUP BY b ORDER BY 3",
	"SELECT c FROM t ORDER BY c DESC",
	"SELECT sum(length(hex(c))) FROM t WHERE b BETWEEN 10 AND 900",
	"SELECT count(*) FROM t AS x JOIN t AS y ON x.a = y.a WHERE x.c <> y.c",
	"SELECT count(DISTINCT c) FROM t",
	"SELECT count(*) FROM t AS x JOIN u ON u.k = x.b WHERE u.v > 'A'",
	"WITH r(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM r LIMIT 200000) SELECT sum(x) FROM r",
	"SELECT a, sum(b) OVER (PARTITION BY b ORDER BY a) FROM t LIMIT 40000, 1",
	"UPDATE t SET b = b + 1 WHERE a % 3 = 0",
	"INSERT INTO w SELECT b, c FROM t WHERE a < 20000",
	"DELETE FROM w WHERE x IN (SELECT k FROM u)",
	"INSERT INTO slow SELECT a FROM t LIMIT 200",
	"INSERT INTO short SELECT a FROM t LIMIT 5000",
};

/* SQLite passes its routines to extensions. */
static int take(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error;
	given = api;
	return SQLITE_OK;
}

static sqlite3 *open_database(void *library)
{
	int (*add)(void (*)(void)) = (int (*)(void (*)(void)))dlsym(library, "sqlite3_auto_extension");
	int (*open)(const char *, sqlite3 **) =
		(int (*)(const char *, sqlite3 **))dlsym(library, "sqlite3_open");
	int (*reset)(void) = (int (*)(void))dlsym(library, "sqlite3_reset_auto_extension");
	sqlite3 *db = NULL;

	if (!add || !open || !reset || add((void (*)(void))take) || open(":memory:", &db))
		return NULL;
	reset();
	return db;
}

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
	timer_t timer;
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	const struct host_library *host;
	const struct opcode_library *opcodes;
	char *error = NULL;
	long learning_ns;
	sqlite3 *db;

	if (!library || !(db = open_database(library)))
		return fprintf(stderr, "usage: truth LIBRARY\n"), 2;
	truth = dlsym(library, "queryprof_truth");
	if (qp_init(NULL) || !(host = host_adopt(given, &error)) || !(thread = sampler_thread()))
		return fprintf(stderr, "%s\n", qp_error()), 1;
	learning_ns = -(long)cpu_ns();
	opcode_library_learn(host, thread);
	learning_ns += (long)cpu_ns();
	if (!(opcodes = opcode_library(host)))
		return printf("%s: not known\n", given->libversion()), 1;
	counts.opcodes = &opcodes->locations;
	given->exec(
		db,
		"CREATE TABLE t (a INTEGER PRIMARY KEY, b, c TEXT); CREATE TABLE u (k INTEGER PRIMARY "
		"KEY, v);"
		"CREATE TABLE w (x, y); CREATE INDEX wx ON w (x);"
		"CREATE TABLE slow (x); CREATE TRIGGER slowly AFTER INSERT ON slow BEGIN"
		" DELETE FROM w WHERE x = new.x;"
		" INSERT INTO w SELECT b, c FROM t WHERE a < 1000 AND c LIKE '%AB%' ORDER BY b LIMIT 9; END;"
		"CREATE TABLE short (x); CREATE TRIGGER shortly AFTER INSERT ON short"
		" BEGIN UPDATE u SET v = new.x WHERE k = new.x % 1000; END;"
		"WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 50000)"
		" INSERT INTO t SELECT x, x % 1000, hex(randomblob(20)) FROM r;"
		"CREATE INDEX tb ON t (b); INSERT INTO u SELECT a, c FROM t WHERE a < 1000",
		NULL, NULL, NULL);
	sigaction(SIGPROF, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &period, NULL))
		return perror("timer"), 1;
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
			run(db, queries[i]);
	timer_delete(timer);
	found.ns -= found.measured * clock_cost_ns();
	const double inside = (double)(found.samples - found.outside - found.between) / 100;
	printf("%ld samples, %ld outside, %ld between, equal %.2f, unknown %.2f, wrong %.2f, %ld ns a "
	       "sample, learnt in %ld us\n",
	       found.samples, found.outside, found.between, (double)found.equal / inside,
	       (double)found.unknown / inside, (double)found.wrong / inside,
	       found.ns / (CALLS * (found.measured ? found.measured : 1)), learning_ns / 1000);
	given->close(db);
	qp_shutdown();
	return 0;
}
