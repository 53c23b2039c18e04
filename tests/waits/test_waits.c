/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of queries with known times: cause, object, length, sums, holders of locks.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "../lib/clock.h"
#include "../lib/must.h"
#include "../lib/sleeps.h"
#include "../lib/steal.h"
#include "../lib/turns.h"
#include "number.h"

#define PERIOD_NS 1000000
#define NS_PER_MS 1000000

static const char *program;
static char folder[] = "/tmp/queryprof-waits-XXXXXX";
static char database[64];

/* --- a connection ----------------------------------------------------------------------- */

static char *text(sqlite3 *db, const char *sql)
{
	static char value[1000];
	sqlite3_stmt *row;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) || sqlite3_step(row) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	snprintf(value, sizeof(value), "%s", (const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
	return value;
}

static sqlite3 *connect_to(const char *path)
{
	char sql[160];
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	must_load(db, QUERYPROF_LIBRARY);
	snprintf(sql, sizeof(sql), "PRAGMA query_profiler_off_cpu_period_ns = %d", PERIOD_NS);
	must_exec(db, sql);
	must_exec(db, "PRAGMA log_queries_min_query_duration_ns = 0");
	return db;
}

/* --- waits ------------------------------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t taken;
static int ends[2];                     /* of a pipe or a socket pair */
static uint64_t truth_ns, truth_cpu_ns; /* wall and CPU time of the thread around a wait */

static void begin_wait(void)
{
	truth_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	truth_ns = now_ns();
}

static void end_wait(void)
{
	truth_ns = now_ns() - truth_ns;
	truth_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - truth_cpu_ns;
}

static void *hold_mutex(void *ms)
{
	pthread_mutex_lock(&mutex);
	sem_post(&taken);
	usleep(1000 * (useconds_t)(uintptr_t)ms);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *write_later(void *ms)
{
	usleep(1000 * (useconds_t)(uintptr_t)ms);
	assert_int_equal(write(ends[1], "x", 1), 1);
	return NULL;
}

static void *sleep_for(void *ms)
{
	usleep(1000 * (useconds_t)(uintptr_t)ms);
	return NULL;
}

static pthread_t start(void *(*routine)(void *), int ms)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, routine, (void *)(uintptr_t)ms), 0);
	return thread;
}

static void wait_for_mutex(int ms)
{
	pthread_t thread;

	sem_init(&taken, 0, 0);
	thread = start(hold_mutex, ms);
	while (sem_trywait(&taken))
		;
	begin_wait();
	pthread_mutex_lock(&mutex);
	end_wait();
	pthread_mutex_unlock(&mutex);
	pthread_detach(thread);
}

static void wait_for_condition(int ms)
{
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)ms * NS_PER_MS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	begin_wait();
	assert_int_equal(pthread_cond_timedwait(&never, &mutex, &until), ETIMEDOUT);
	end_wait();
	pthread_mutex_unlock(&mutex);
}

static void wait_for_byte(int ms, bool polls)
{
	struct pollfd readable = { .fd = ends[0], .events = POLLIN };
	pthread_t thread = start(write_later, ms);
	char byte;

	begin_wait();
	if (polls)
		assert_int_equal(poll(&readable, 1, 10000), 1);
	else
		assert_int_equal(read(ends[0], &byte, 1), 1);
	end_wait();
	if (polls)
		assert_int_equal(read(ends[0], &byte, 1), 1);
	pthread_detach(thread);
}

static void wait_for_thread(int ms)
{
	pthread_t thread = start(sleep_for, ms);

	begin_wait();
	pthread_join(thread, NULL);
	end_wait();
}

static void sleep_here(int ms)
{
	begin_wait();
	usleep((useconds_t)ms * 1000);
	end_wait();
}

static void wait_for_pipe(int ms)
{
	assert_int_equal(pipe(ends), 0);
	wait_for_byte(ms, false);
}

static void poll_pipe(int ms)
{
	assert_int_equal(pipe(ends), 0);
	wait_for_byte(ms, true);
}

static void wait_for_socket(int ms)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	wait_for_byte(ms, false);
}

static const struct kind {
	const char *name; /* also the cause */
	const char *column;
	void (*wait)(int ms);
} kinds[] = {
	{ "sleep", "sleep_ns", sleep_here },
	{ "mutex", "mutex_wait_ns", wait_for_mutex },
	{ "condition", "other_wait_ns", wait_for_condition },
	{ "read", "io_read_ns", wait_for_pipe },
	{ "poll", "other_wait_ns", poll_pipe },
	{ "network", "other_wait_ns", wait_for_socket },
	{ "thread", "other_wait_ns", wait_for_thread },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void wait_in_query(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct kind *kind = &kinds[sqlite3_value_int(values[0])];

	(void)count;
	kind->wait(sqlite3_value_int(values[1]));
	sqlite3_result_int(context, 1);
	if (kind->wait == wait_for_pipe || kind->wait == poll_pipe || kind->wait == wait_for_socket) {
		close(ends[0]);
		close(ends[1]);
	}
}

/* --- cause and length ------------------------------------------------------------------- */

#define BOUND_MS 30

/* Returns the difference between the wait's length and the truth: the wall time around it minus the
 * thread's CPU time in it. (Taking the sample uses CPU time, 110 us under AddressSanitizer.) If the thread
 * loses its processor next to the wait, the wait may be shorter or missing. So one of several trials must
 * be right, and none too long. */
static int64_t try_kind(sqlite3 *db, size_t i, int trial)
{
	int64_t length, sum, samples, truth, without_cpu;
	char sql[100];

	snprintf(sql, sizeof(sql), "PRAGMA query_id = '%s-%d'", kinds[i].name, trial);
	must_exec(db, sql);
	number(db, "SELECT wait(%d, %d)", (int)i, BOUND_MS);
	truth = (int64_t)truth_ns;
	without_cpu = truth - (int64_t)truth_cpu_ns;
	samples =
		number(db,
	               "SELECT count(*) FROM system.trace_log WHERE query_id = '%s-%d' AND wait_ns > %lld AND"
	               " trace_type = 'OffCPU' AND wait_cause = 'user function' AND wait_object = '%s' AND"
	               " value = weight * %d AND period_ns = %d",
	               kinds[i].name, trial, (long long)truth / 2, kinds[i].name, PERIOD_NS, PERIOD_NS);
	length = number(db,
	                "SELECT max(wait_ns) FROM system.trace_log WHERE query_id = '%s-%d' AND wait_object"
	                " = '%s'",
	                kinds[i].name, trial, kinds[i].name);
	sum = number(db, "SELECT %s FROM system.query_log WHERE query_id = '%s-%d'", kinds[i].column,
	             kinds[i].name, trial);
	assert_true(length <= truth);
	return samples == 1 && sum > BOUND_MS * NS_PER_MS / 2 ? llabs(without_cpu - length) : INT64_MAX;
}

static void test_causes(void **state)
{
	sqlite3 *db = *state;

	for (size_t i = 0; i < KINDS; i++) {
		int64_t least = INT64_MAX;

		for (int trial = 0; trial < 30 && least > 100000; trial++) {
			int64_t off = try_kind(db, i, trial);
			least = off < least ? off : least;
		}
		printf("  %-10s %lld ns off the truth\n", kinds[i].name, (long long)least);
		assert_true(least <= 100000);
	}
}

/* The parts of every run add up to its time. */
static void test_sums(void **state)
{
	sqlite3 *db = *state;

	must_exec(
		db,
		"CREATE TABLE IF NOT EXISTS t(x); PRAGMA cache_size = 10;"
		"INSERT INTO t WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
		" SELECT hex(randomblob(50)) FROM n; SELECT count(*) FROM (SELECT x FROM t ORDER BY x DESC)");
	assert_true(number(db, "SELECT count(*) FROM system.query_log WHERE syncs > 0 AND writes > 10"
	                       " AND write_bytes > 1000000") > 0);
	assert_string_equal(
		text(db,
	             "SELECT coalesce(group_concat(parts, '; '), '') FROM (SELECT printf('%.30s: %d of %d: "
	             "CPU %d, lock %d,"
	             " read %d, write %d, sync %d, mutex %d, sleep %d, other %d, delay %d, rest %d', query,"
	             " cpu_time_ns + lock_wait_ns + io_read_ns + io_write_ns + io_sync_ns + mutex_wait_ns + "
	             "sleep_ns +"
	             " other_wait_ns + run_delay_ns + rest_ns, execution_time_ns, cpu_time_ns, lock_wait_ns,"
	             " io_read_ns, io_write_ns, io_sync_ns, mutex_wait_ns, sleep_ns, other_wait_ns, "
	             "run_delay_ns,"
	             " rest_ns) AS parts FROM system.query_log WHERE type = 'QueryFinish' AND "
	             "abs(cpu_time_ns +"
	             " lock_wait_ns + io_read_ns + io_write_ns + io_sync_ns + mutex_wait_ns + sleep_ns + "
	             "other_wait_ns +"
	             " run_delay_ns + rest_ns - execution_time_ns) > execution_time_ns / 100 + 20000)"),
		"");
	assert_int_equal(
		number(db, "SELECT count(*) FROM system.query_log WHERE sleep_ns > query_duration_ns"), 0);
}

/* --- without bias ----------------------------------------------------------------------- */

#define SHORT_WAITS 5000
#define LONG_US 3000 /* duration of one sleep in 100 */

static uint64_t delay_ns; /* time that the thread waited for a processor, inside or outside a wait */
static int long_waits;    /* sleeps of LONG_US that were waits */

static uint64_t run_delay_now(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	uint64_t on = 0, delay = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%" SCNu64 " %" SCNu64, &on, &delay), 2);
	fclose(file);
	return delay;
}

static void sleep_shortly(sqlite3_context *context, int count, sqlite3_value **values)
{
	uint64_t cpu = clock_read_ns(CLOCK_THREAD_CPUTIME_ID), wall = 0;
	unsigned long long stolen;

	(void)count, (void)values;
	delay_ns = run_delay_now();
	stolen = stolen_ticks();
	for (int i = 0; i < SHORT_WAITS; i++) {
		uint64_t before = now_ns();
		if (i % 100)
			usleep(50);
		else
			long_waits += sleep_for_us(LONG_US);
		wall += now_ns() - before;
	}
	truth_ns = wall;
	delay_ns = run_delay_now() - delay_ns + (uint64_t)stolen_ns(stolen_ticks() - stolen);
	sqlite3_result_int64(context, (sqlite3_int64)(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu));
}

static void test_short_waits(void **state)
{
	sqlite3 *db = *state;
	int64_t cpu, sampled, waited;

	must_exec(db, "PRAGMA query_id = 'short'");
	cpu = number(db, "SELECT sleep_shortly()");
	waited = number(db, "SELECT sleep_ns FROM system.query_log WHERE query_id = 'short'");
	sampled = number(
		db,
		"SELECT sum(value) FROM system.trace_log WHERE query_id = 'short' AND trace_type = 'OffCPU'"
		" AND wait_object = 'sleep'");
	printf("  %d sleeps: %.3f s of wall time, %.3f s waited, %.3f s sampled, %.3f s of CPU time\n",
	       SHORT_WAITS, (double)truth_ns / 1e9, (double)waited / 1e9, (double)sampled / 1e9,
	       (double)cpu / 1e9);
	assert_true(waited <= (int64_t)truth_ns);
	assert_true(waited >= ((int64_t)truth_ns - cpu - (int64_t)delay_ns) * 98 / 100);
	/* Sampling adds at most the first and the last period. */
	assert_true(llabs(sampled - waited) <= 2 * PERIOD_NS);
	/* Each sleep longer than a period has a sample. */
	assert_true(long_waits > 0);
	assert_true(number(db,
	                   "SELECT count(*) FROM system.trace_log WHERE query_id = 'short' AND"
	                   " wait_object = 'sleep' AND wait_ns >= %d",
	                   LONG_US * 1000) >= long_waits);
}

#define TURNS 5000

/* Returns the number of turns with a context switch. */
static void pass_to_and_fro(sqlite3_context *context, int count, sqlite3_value **values)
{
	unsigned long long stolen;
	int switches = 0;

	(void)count, (void)values;
	begin_turns(TURNS);
	truth_ns = 0;
	delay_ns = run_delay_now();
	stolen = stolen_ticks();
	for (int i = 0; i < TURNS; i++) {
		struct turn turn = take_turn();
		truth_ns += turn.ns;
		switches += turn.switched;
	}
	delay_ns = run_delay_now() - delay_ns + (uint64_t)stolen_ns(stolen_ticks() - stolen);
	end_turns();
	sqlite3_result_int(context, switches);
}

static void test_turns(void **state)
{
	sqlite3 *db = *state;
	int64_t switches, waited;

	must_exec(db, "PRAGMA query_id = 'turns'");
	switches = number(db, "SELECT pass_to_and_fro()");
	waited = number(db, "SELECT other_wait_ns FROM system.query_log WHERE query_id = 'turns'");
	printf("  %d turns, %d with a switch: %.2f us of wall time each, %.2f us waited\n", TURNS,
	       (int)switches, (double)truth_ns / 1e3 / TURNS, (double)waited / 1e3 / TURNS);
	assert_true(waited <= (int64_t)truth_ns * 102 / 100);
	/* The switch is half of a short wait. If the other thread is quicker, there is no wait. */
	if (switches >= TURNS / 2)
		assert_true(waited >= ((int64_t)truth_ns - (int64_t)delay_ns) / 5);
}

/* A thread waits once, for less than a period. Its first period begins at a random time. */
#define THREADS 400

static void *wait_once(void *unused)
{
	sqlite3 *db = connect_to(":memory:");

	(void)unused;
	sqlite3_create_function(db, "wait", 2, SQLITE_UTF8, NULL, wait_in_query, NULL, NULL);
	must_exec(db, "PRAGMA query_profiler_off_cpu_period_ns = '100ms'");
	must_exec(db, "PRAGMA query_id = 'once'");
	number(db, "SELECT wait(0, 10)");
	sqlite3_close(db);
	return NULL;
}

static void test_one_wait_a_thread(void **state)
{
	sqlite3 *db = *state;
	double waited, sampled, deviation;

	for (int i = 0; i < THREADS; i += 40) {
		pthread_t threads[40];
		for (int t = 0; t < 40; t++)
			pthread_create(&threads[t], NULL, wait_once, NULL);
		for (int t = 0; t < 40; t++)
			pthread_join(threads[t], NULL);
	}
	waited = (double)number(db, "SELECT sum(sleep_ns) FROM system.query_log WHERE query_id = 'once'") /
	         1e8;
	sampled = (double)number(
		db,
		"SELECT sum(weight) FROM system.trace_log WHERE query_id = 'once' AND trace_type = 'OffCPU'"
		" AND wait_object = 'sleep'");
	/* The chance of a sample is the wait's share of a period. */
	deviation = waited / THREADS < 1 ? THREADS * (waited / THREADS) * (1 - waited / THREADS) : THREADS;
	printf("  %.2f periods waited by %d threads, %.0f sampled; variance %.2f\n", waited, THREADS, sampled,
	       deviation);
	assert_true((sampled - waited) * (sampled - waited) <= 25 * deviation);
}

/* --- locks ------------------------------------------------------------------------------ */

#define HELD_MS 100

/* Releases the lock HELD_MS after a query was seen to wait for it. The query therefore waits at least that
 * long, however late its thread is. */
struct release {
	sqlite3 *holder; /* commits; NULL: the process at the pipe's other end commits */
	int pipe;
};

static void *release_later(void *context)
{
	sqlite3 *observer = connect_to(":memory:");
	struct release *release = context;

	while (!number(observer, "SELECT count(*) FROM system.processes WHERE wait_cause = 'lock'"))
		usleep(1000);
	usleep(HELD_MS * 1000);
	if (release->holder)
		must_exec(release->holder, "COMMIT");
	else
		assert_int_equal(write(release->pipe, "x", 1), 1);
	sqlite3_close(observer);
	return NULL;
}

static void check_wait(sqlite3 *db, const char *what, const char *outcome, const char *lock)
{
	assert_int_equal(
		number(db,
	               "SELECT count(*) FROM system.lock_waits WHERE query_id = '%s' AND outcome = '%s'"
	               " AND lock = '%s' AND database LIKE '%%/waits.db'",
	               what, outcome, lock),
		1);
	/* The busy handler sleeps, and the wait encloses its sleeps. After each sleep the thread may wait
	 * for a processor. */
	assert_int_equal(
		number(db,
	               "SELECT count(*) FROM system.lock_waits AS l JOIN system.query_log AS q USING "
	               "(query_id) WHERE query_id = '%s' AND lock_wait_ns <= l.wait_ns + 10000 AND"
	               " lock_wait_ns + run_delay_ns >= l.wait_ns / 2 AND sleep_ns = 0 AND"
	               " l.wait_ns <= q.execution_time_ns",
	               what),
		1);
	assert_true(number(db,
	                   "SELECT count(*) FROM system.trace_log WHERE query_id = '%s' AND wait_cause = "
	                   "'lock' AND"
	                   " wait_object = '%s' AND wait_ns >= 1000000",
	                   what, lock) > 0);
}

static void wait_for_session(sqlite3 *db, const char *what, const char *lock)
{
	struct release release = { .holder = connect_to(database) };
	pthread_t thread;
	char sql[80];

	sqlite3_busy_timeout(db, 60000);
	must_exec(release.holder, "PRAGMA query_id = 'holds'");
	must_exec(release.holder, "BEGIN IMMEDIATE");
	pthread_create(&thread, NULL, release_later, &release);
	snprintf(sql, sizeof(sql), "PRAGMA query_id = '%s'", what);
	must_exec(db, sql);
	must_exec(db, "INSERT INTO t VALUES (1)");
	pthread_join(thread, NULL);
	check_wait(db, what, "SQLITE_OK", lock);
	assert_int_equal(
		number(db,
	               "SELECT holder_process_id = %d AND holder_query = 'BEGIN IMMEDIATE' AND wait_ns "
	               ">= %d AND holder_session_id <> session_id AND holder_session_id <> 0 AND "
	               "holder_thread_id = thread_id AND holder_query_id <> '' FROM system.lock_waits"
	               " WHERE query_id = '%s'",
	               (int)getpid(), HELD_MS * NS_PER_MS, what),
		1);
	assert_int_equal(number(db,
	                        "SELECT count(*) FROM system.transaction_log AS t JOIN system.lock_waits AS l"
	                        " ON l.holder_transaction = t.transaction_number AND l.holder_session_id = "
	                        "t.session_id"
	                        " WHERE l.query_id = '%s' AND t.outcome = 'commit' AND t.waits = 1 AND"
	                        " t.waited_ns = l.wait_ns AND t.first_query = 'BEGIN IMMEDIATE' AND"
	                        " t.last_query = 'COMMIT' AND t.statements = 2 AND t.idle_ns >= %d",
	                        what, HELD_MS * NS_PER_MS),
	                 1);
	sqlite3_close(release.holder);
}

/* Slows the preparation of BEGIN, which is not part of the transaction. */
static int take_long(void *context, int action, const char *what, const char *name, const char *database_name,
                     const char *trigger)
{
	(void)context, (void)what, (void)name, (void)database_name, (void)trigger;
	if (action == SQLITE_TRANSACTION)
		usleep(20000);
	return SQLITE_OK;
}

#define FIFTY "12345678901234567890123456789012345678901234567890"

/* Short transactions that no statement waits for, one with work in it. */
static void test_transactions(void **state)
{
	sqlite3 *db = *state;
	sqlite3_int64 session;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	for (int wal = 0; wal < 2; wal++) {
		if (wal)
			must_exec(db, "PRAGMA journal_mode = WAL");
		must_exec(db, "PRAGMA query_id = 'begins'");
		sqlite3_set_authorizer(db, take_long, NULL);
		must_exec(db, "BEGIN IMMEDIATE");
		sqlite3_set_authorizer(db, NULL, NULL);
		must_exec(db, "INSERT INTO t VALUES (1)");
		usleep(100000);
		must_exec(db, "UPDATE t SET x = x");
		must_exec(db, wal ? "/* all of it */ -- undone\n\tROLLBACK" : "ROLLBACK");
		session = number(db, "SELECT session_id FROM system.query_log WHERE query_id = 'begins'");
		assert_int_equal(
			number(db,
		               "SELECT count(*) FROM system.transaction_log WHERE session_id = %lld AND"
		               " outcome = 'rollback' AND first_query = 'BEGIN IMMEDIATE' AND last_query "
		               "LIKE "
		               "'%%ROLLBACK'"
		               " AND first_query_id = 'begins' AND statements = 4 AND waits = 0 AND"
		               " idle_ns BETWEEN 100000000 AND duration_ns AND"
		               " write_lock_ns BETWEEN idle_ns AND duration_ns AND database LIKE "
		               "'%%/waits.db'",
		               session),
			wal + 1);
		must_exec(db, "INSERT INTO t VALUES (length('" FIFTY FIFTY FIFTY "'))");
		assert_int_equal(
			number(db,
		               "SELECT outcome = 'commit' AND statements = 1 AND first_query = last_query"
		               " AND length(last_query) = 127"
		               " FROM system.transaction_log WHERE session_id = %lld AND write_lock_ns > 0"
		               " ORDER BY timestamp_ns DESC LIMIT 1",
		               session),
			1);
	}
	must_exec(db, "PRAGMA journal_mode = DELETE");
}

/* Closing a connection rolls its transaction back. */
static void test_close(void **state)
{
	sqlite3 *db = *state, *closes;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	for (int wal = 0; wal < 2; wal++) {
		if (wal)
			must_exec(db, "PRAGMA journal_mode = WAL");
		closes = connect_to(database);
		must_exec(closes, "BEGIN IMMEDIATE");
		must_exec(closes, "INSERT INTO t VALUES ('never')");
		sqlite3_close(closes);
		assert_int_equal(
			number(db, "SELECT count(*) FROM system.transaction_log WHERE outcome = 'rollback'"
		                   " AND first_query = 'BEGIN IMMEDIATE' AND last_query = "
		                   "'sqlite3_close()'"),
			wal + 1);
	}
	must_exec(db, "PRAGMA journal_mode = DELETE");
}

static void read_other(sqlite3_context *context, int count, sqlite3_value **values)
{
	sqlite3_stmt *stmt;

	(void)count, (void)values;
	assert_int_equal(
		sqlite3_prepare_v2(sqlite3_user_data(context), "SELECT x AS inside FROM t", -1, &stmt, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	sqlite3_finalize(stmt);
	sqlite3_result_int(context, 1);
}

/* A transaction that begins and ends inside another connection's statement. */
static void test_inside(void **state)
{
	sqlite3 *db = *state, *other = connect_to(database);

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	must_exec(db, "INSERT INTO t VALUES (1)");
	must_exec(other, "SELECT x FROM t");
	sqlite3_create_function(db, "read_other", 0, SQLITE_UTF8, other, read_other, NULL, NULL);
	must_exec(db, "SELECT read_other() FROM t LIMIT 1");
	assert_int_equal(
		number(db, "SELECT count(*) FROM system.transaction_log WHERE statements = 1 AND last_query"
	                   " = first_query AND first_query LIKE '%% AS inside FROM t'"),
		1);
	sqlite3_close(other);
}

#define PAUSE_MS 50
#define LEAST_PAUSE_NS 20000000

/* A preparation reads the schema under a lock, and releases the lock. */
static void test_preparation(void **state)
{
	sqlite3 *db = *state, *reader;
	sqlite3_stmt *stmt;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	reader = connect_to(database);
	assert_int_equal(sqlite3_prepare_v2(reader, "SELECT count(*) FROM t AS prepared", -1, &stmt, NULL),
	                 SQLITE_OK);
	usleep(PAUSE_MS * 1000);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	sqlite3_finalize(stmt);
	assert_int_equal(number(db,
	                        "SELECT count(*) FROM system.transaction_log WHERE outcome = 'read' AND"
	                        " first_query LIKE '%% AS prepared' AND last_query = first_query AND"
	                        " statements = 1 AND idle_ns < %d",
	                        LEAST_PAUSE_NS),
	                 2);
	sqlite3_close(reader);
}

static void back_up(sqlite3 *from, sqlite3 *to, int pages)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

	assert_non_null(backup);
	while (sqlite3_backup_step(backup, pages) == SQLITE_OK)
		usleep(PAUSE_MS * 1000);
	assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
}

/* A backup locks its destination from its first step to its last one, and its source only during a step.
 * Later transactions of both connections have rows of their own. */
static void test_backup(void **state)
{
	sqlite3 *from = *state, *to, *memory;
	char path[80];

	must_exec(from, "DROP TABLE IF EXISTS t");
	must_exec(from, "CREATE TABLE t(x)");
	must_exec(from, "INSERT INTO t VALUES (zeroblob(20000))");
	assert_int_equal(sqlite3_open(":memory:", &memory), SQLITE_OK);
	back_up(from, memory, 4);
	assert_int_equal(number(from,
	                        "SELECT count(*) > 1 AND max(idle_ns) < %d FROM system.transaction_log"
	                        " WHERE first_query = 'sqlite3_backup_step(main)'",
	                        LEAST_PAUSE_NS),
	                 1);
	snprintf(path, sizeof(path), "%s/backup.db", folder);
	to = connect_to(path);
	must_exec(to, "CREATE TABLE u(x)");
	back_up(from, to, 4);
	must_exec(from, "INSERT INTO t VALUES ('of the source')");
	must_exec(to, "INSERT INTO t VALUES ('of the destination')");
	assert_int_equal(number(from,
	                        "SELECT count(*) FROM system.transaction_log WHERE outcome = 'commit' AND"
	                        " first_query = 'sqlite3_backup_step(main)' AND last_query = first_query"
	                        " AND database LIKE '%%/backup.db' AND idle_ns >= %d",
	                        PAUSE_MS * NS_PER_MS),
	                 1);
	assert_int_equal(number(from,
	                        "SELECT count(DISTINCT session_id) FROM system.transaction_log WHERE"
	                        " outcome = 'commit' AND statements = 1 AND last_query = first_query AND"
	                        " first_query LIKE 'INSERT INTO t VALUES (''of the %%'"),
	                 2);
	sqlite3_close(to);
	sqlite3_close(memory);
}

#define BESIDE 20

/* A connection keeps a lock on the file of a database in WAL mode. The reader is therefore the statement
 * that has a lock of the WAL, even after another statement has written. */
static void test_reader(void **state)
{
	sqlite3 *db = *state, *reader;
	sqlite3_stmt *stmt;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	must_exec(db, "PRAGMA journal_mode = WAL");
	must_exec(db, "INSERT INTO t VALUES (1), (2)");
	reader = connect_to(database);
	must_exec(reader, "SELECT 'earlier', x FROM t");
	must_exec(reader, "SELECT 'before', x FROM t");
	assert_int_equal(sqlite3_prepare_v2(reader, "SELECT 'now', x FROM t", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	must_exec(reader, "INSERT INTO t VALUES (3)");
	must_exec(db, "PRAGMA synchronous = OFF");
	for (int i = 0; i < BESIDE; i++)
		must_exec(db, "INSERT INTO t VALUES ('beside the reader')");
	must_exec(db, "PRAGMA synchronous = FULL");
	/* The INSERT requests another reader's slot and is refused. It does not wait, unless it loses its
	 * processor there. */
	assert_in_range(
		number(db, "SELECT count(*) FROM system.lock_waits WHERE query LIKE '%%beside the reader%%'"),
		0, BESIDE - 1);
	sqlite3_busy_timeout(db, 50);
	must_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
	sqlite3_busy_timeout(db, 0);
	assert_string_equal(
		text(db, "SELECT holder_query FROM system.lock_waits WHERE lock = 'WAL read' AND query"
	                 " = 'PRAGMA wal_checkpoint(TRUNCATE)'"),
		"SELECT 'now', x FROM t");
	sqlite3_finalize(stmt);
	sqlite3_close(reader);
	must_exec(db, "PRAGMA journal_mode = DELETE");
}

/* Both connections share one file. The transaction belongs to the connection that locks the file first. */
static void test_shared_cache(void **state)
{
	sqlite3 *one, *other;
	char path[80];

	snprintf(path, sizeof(path), "%s/shared.db", folder);
	sqlite3_enable_shared_cache(1);
	one = connect_to(path);
	other = connect_to(path);
	sqlite3_enable_shared_cache(0);
	must_exec(one, "CREATE TABLE s(x)");
	must_exec(one, "INSERT INTO s VALUES ('of one')");
	must_exec(other, "INSERT INTO s VALUES ('of the other')");
	must_exec(other, "INSERT INTO s VALUES ('of the other, too')");
	sqlite3_close(one);
	must_exec(other, "INSERT INTO s VALUES ('of the one that is left')");
	assert_int_equal(number(*state,
	                        "SELECT count(*) * 10 + count(DISTINCT session_id) FROM"
	                        " system.transaction_log WHERE outcome = 'commit' AND statements = 1 AND"
	                        " first_query LIKE 'INSERT INTO s VALUES%%'"),
	                 42);
	sqlite3_close(other);
}

static void fail_busy(sqlite3 *db, const char *what, const char *lock)
{
	sqlite3 *holder = connect_to(database);
	char sql[80];

	must_exec(holder, "BEGIN IMMEDIATE");
	sqlite3_busy_timeout(db, 50);
	snprintf(sql, sizeof(sql), "PRAGMA query_id = '%s'", what);
	must_exec(db, sql);
	assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES (1)", NULL, NULL, NULL), SQLITE_BUSY);
	must_exec(holder, "COMMIT");
	check_wait(db, what, "SQLITE_BUSY", lock);
	sqlite3_close(holder);
}

/* Runs in another process, without queryprof. */
static int hold_in_process(const char *path)
{
	sqlite3 *db;
	char byte;

	if (sqlite3_open(path, &db) || sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) ||
	    write(1, "x", 1) != 1 || read(0, &byte, 1) != 1)
		return 1;
	return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) || sqlite3_close(db);
}

static void wait_for_process(sqlite3 *db, const char *what, const char *lock)
{
	char byte, sql[80];
	struct release release = { .holder = NULL };
	int out[2], in[2], status;
	pthread_t thread;
	pid_t child;

	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(in), 0);
	child = fork();
	if (!child) {
		dup2(out[1], 1);
		dup2(in[0], 0);
		execl(program, program, "hold", database, NULL);
		_exit(127);
	}
	assert_int_equal(read(out[0], &byte, 1), 1);
	release.pipe = in[1];
	pthread_create(&thread, NULL, release_later, &release);
	sqlite3_busy_timeout(db, 60000);
	snprintf(sql, sizeof(sql), "PRAGMA query_id = '%s'", what);
	must_exec(db, sql);
	must_exec(db, "INSERT INTO t VALUES (1)");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pthread_join(thread, NULL);
	check_wait(db, what, "SQLITE_OK", lock);
	assert_int_equal(
		number(db, "SELECT holder_process_id FROM system.lock_waits WHERE query_id = '%s'", what),
		child);
	close(out[0]);
	close(out[1]);
	close(in[0]);
	close(in[1]);
}

/* A commit that waits for a reader keeps new readers out. */
static void test_pending(void **state)
{
	sqlite3 *db = *state, *reader = connect_to(database), *writer = connect_to(database);
	sqlite3_stmt *reading;
	sqlite3_int64 session;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	must_exec(db, "INSERT INTO t VALUES (1), (2)");
	assert_int_equal(sqlite3_prepare_v2(reader, "SELECT x FROM t", -1, &reading, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(reading), SQLITE_ROW);
	must_exec(writer, "PRAGMA query_id = 'pends'");
	must_exec(writer, "BEGIN IMMEDIATE");
	must_exec(writer, "INSERT INTO t VALUES (3)");
	assert_int_equal(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), SQLITE_BUSY);
	must_exec(db, "PRAGMA query_id = 'kept-out'");
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
	usleep(HELD_MS * 1000);
	sqlite3_finalize(reading);
	must_exec(writer, "COMMIT");
	session = number(db, "SELECT session_id FROM system.query_log WHERE query_id = 'pends'");
	assert_int_equal(number(db,
	                        "SELECT holder_session_id FROM system.lock_waits WHERE query_id = 'kept-out'"
	                        " AND lock = 'SHARED' AND outcome = 'SQLITE_BUSY'"),
	                 session);
	assert_int_equal(number(db,
	                        "SELECT count(*) FROM system.transaction_log WHERE session_id = %lld AND"
	                        " outcome = 'commit' AND pending_lock_ns BETWEEN %d AND write_lock_ns AND"
	                        " exclusive_lock_ns BETWEEN 1 AND pending_lock_ns - %d AND waits = 1",
	                        session, HELD_MS * NS_PER_MS, HELD_MS * NS_PER_MS),
	                 1);
	sqlite3_close(writer);
	sqlite3_close(reader);
}

static void test_locks(void **state)
{
	sqlite3 *db = *state;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	wait_for_session(db, "session", "RESERVED");
	fail_busy(db, "busy", "RESERVED");
	wait_for_process(db, "process", "RESERVED");
	must_exec(db, "PRAGMA journal_mode = WAL");
	wait_for_session(db, "session-wal", "WAL write");
	fail_busy(db, "busy-wal", "WAL write");
	wait_for_process(db, "process-wal", "WAL write");
	must_exec(db, "PRAGMA journal_mode = DELETE");
}

/* A run's wait never exceeds its time, even if the thread loses its processor at the end of the call. */
#define REFUSALS 2000

static void test_refused_at_once(void **state)
{
	sqlite3 *db = *state, *holder = connect_to(database);

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	must_exec(holder, "BEGIN IMMEDIATE");
	sqlite3_busy_timeout(db, 0);
	for (int i = 0; i < REFUSALS; i++)
		assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES (4)", NULL, NULL, NULL), SQLITE_BUSY);
	must_exec(holder, "COMMIT");
	assert_int_equal(number(db,
	                        "SELECT count(*) FROM system.lock_waits AS l JOIN system.query_log AS q USING"
	                        " (query_id) WHERE q.query = 'INSERT INTO t VALUES (4)'"),
	                 REFUSALS);
	assert_int_equal(number(db,
	                        "SELECT count(*) FROM system.lock_waits AS l JOIN system.query_log AS q USING"
	                        " (query_id) WHERE q.query = 'INSERT INTO t VALUES (4)' AND"
	                        " l.wait_ns > q.execution_time_ns"),
	                 0);
	sqlite3_close(holder);
}

/* --- while it lasts --------------------------------------------------------------------- */

static void *insert(void *db)
{
	must_exec(db, "INSERT INTO t VALUES (3)");
	return NULL;
}

static void test_running_wait(void **state)
{
	sqlite3 *db = *state, *waiting = connect_to(database), *holder = connect_to(database);
	uint64_t start_ns = now_ns();
	pthread_t thread;

	must_exec(db, "CREATE TABLE IF NOT EXISTS t(x)");
	sqlite3_busy_timeout(waiting, 60000);
	must_exec(holder, "BEGIN IMMEDIATE");
	pthread_create(&thread, NULL, insert, waiting);
	while (!number(db,
	               "SELECT count(*) FROM system.processes WHERE wait_cause = 'lock' AND wait_object ="
	               " 'RESERVED' AND wait_ns >= 50000000 AND wait_ns <= elapsed_ns + 1000000 AND"
	               " holder_session_id <> 0 AND holder_process_id = %d",
	               (int)getpid()))
		if (now_ns() - start_ns > 300000000000)
			fail_msg("%s",
			         text(db, "SELECT group_concat(wait_cause || ' ' || wait_object || ' ' ||"
			                  " wait_ns) FROM system.processes"));
	/* The file shows the wait before it ends. */
	while (!number(
		db,
		"SELECT count(*) FROM system.lock_waits WHERE outcome = 'waiting' AND lock = 'RESERVED' AND"
		" wait_ns >= 1000000000 AND holder_query = 'BEGIN IMMEDIATE' AND holder_session_id <> 0"))
		usleep(10000);
	must_exec(holder, "COMMIT");
	pthread_join(thread, NULL);
	assert_int_equal(number(db, "SELECT count(*) FROM system.processes WHERE wait_cause = 'lock'"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM system.lock_waits WHERE outcome = 'waiting'"), 0);
	/* Only this query, because on a busy machine others may have waited as long. */
	assert_int_equal(number(db, "SELECT count(*) FROM system.lock_waits WHERE wait_ns >= 1000000000 AND"
	                            " query = 'INSERT INTO t VALUES (3)'"),
	                 1);
	sqlite3_close(waiting);
	sqlite3_close(holder);
}

/* --- unseen by the host --------------------------------------------------------------- */

static void keep_results(sqlite3_context *context, int count, sqlite3_value **values)
{
	pthread_mutexattr_t kind;
	pthread_mutex_t checked;
	char byte;

	(void)count, (void)values;
	pthread_mutexattr_init(&kind);
	pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &kind);
	assert_int_equal(pthread_mutex_lock(&checked), 0);
	assert_int_equal(pthread_mutex_lock(&checked), EDEADLK);
	assert_int_equal(pthread_mutex_unlock(&checked), 0);
	errno = 4711;
	assert_int_equal(pthread_mutex_lock(&checked), 0);
	assert_int_equal(errno, 4711);
	usleep(2000);
	assert_int_equal(errno, 4711);
	assert_int_equal(read(-1, &byte, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(fsync(-1), -1);
	assert_int_equal(errno, EBADF);
	sqlite3_result_int(context, 1);
}

static void *be_cancelled(void *context)
{
	number(context, "SELECT wait(0, 60000)");
	return NULL;
}

static void test_host(void **state)
{
	sqlite3 *db = *state, *cancelled = connect_to(":memory:");
	pthread_t thread;
	void *result;

	sqlite3_create_function(db, "keep_results", 0, SQLITE_UTF8, NULL, keep_results, NULL, NULL);
	assert_int_equal(number(db, "SELECT keep_results()"), 1);
	sqlite3_create_function(cancelled, "wait", 2, SQLITE_UTF8, NULL, wait_in_query, NULL, NULL);
	pthread_create(&thread, NULL, be_cancelled, cancelled);
	while (!number(db, "SELECT count(*) FROM system.processes WHERE wait_cause = 'sleep'"))
		;
	pthread_cancel(thread);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(number(db, "SELECT wait(0, 1)"), 1);
}

/* ---------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	sqlite3 *db;

	if (!mkdtemp(folder))
		return -1;
	snprintf(database, sizeof(database), "%s/waits.db", folder);
	*state = db = connect_to(database);
	sqlite3_create_function(db, "wait", 2, SQLITE_UTF8, NULL, wait_in_query, NULL, NULL);
	sqlite3_create_function(db, "sleep_shortly", 0, SQLITE_UTF8, NULL, sleep_shortly, NULL, NULL);
	sqlite3_create_function(db, "pass_to_and_fro", 0, SQLITE_UTF8, NULL, pass_to_and_fro, NULL, NULL);
	return 0;
}

static int tear_down(void **state)
{
	char command[100];

	sqlite3_close(*state);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader), /* the first refusal of the process */
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_short_waits),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_one_wait_a_thread),
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_preparation),
		cmocka_unit_test(test_backup),
		cmocka_unit_test(test_shared_cache),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_running_wait),
		cmocka_unit_test(test_host),
	};

	if (argc == 3)
		return hold_in_process(argv[2]);
	program = argv[0];
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
