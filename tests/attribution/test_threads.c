/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements and connections that several threads use.
 */
#include "../host/host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLOW_ROWS                                                                                            \
	"SELECT /* %s */ x, (WITH RECURSIVE c(y) AS (SELECT n.x UNION ALL SELECT y + 1 FROM c "              \
	"WHERE y < %d) SELECT sum(y) FROM c) FROM n"

static sqlite3 *open_with_numbers(const char *settings)
{
	sqlite3 *db = host_open(":memory:");

	host_exec(db, "CREATE TABLE n(x); INSERT INTO n VALUES (1), (2), (3), (4), (5), (6), (7), (8); %s",
	          settings);
	return db;
}

static sqlite3_stmt *prepare_rows(sqlite3 *db, const char *mark, int count)
{
	char *sql = sqlite3_mprintf(SLOW_ROWS, mark, count);
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	sqlite3_free(sql);
	return stmt;
}

/* Steps a statement once, on a new thread or on a thread that stays. */
struct stepper {
	sqlite3_stmt *stmt;
	pthread_barrier_t *go;
	uint64_t inside;
	int steps;
};

static void step_timed(struct stepper *stepper)
{
	uint64_t start = host_thread_cpu();

	assert_int_equal(sqlite3_step(stepper->stmt), SQLITE_ROW);
	stepper->inside += host_thread_cpu() - start;
}

static void *step_once(void *context)
{
	step_timed(context);
	return NULL;
}

static void *step_in_turns(void *context)
{
	struct stepper *stepper = context;

	for (int i = 0; i < stepper->steps; i++) {
		pthread_barrier_wait(stepper->go);
		step_timed(stepper);
		pthread_barrier_wait(stepper->go);
	}
	pthread_barrier_wait(stepper->go); /* alive to the end */
	return NULL;
}

static void expect_cpu_time(sqlite3 *db, const char *mark, uint64_t inside)
{
	int64_t logged = host_int(
		db, "SELECT cpu_time_ns FROM system.query_log WHERE query LIKE '%%/* %s */%%'", mark);
	int64_t sampled =
		host_int(db,
	                 "SELECT coalesce(sum(weight * period_ns), 0) FROM system.trace_log "
	                 "WHERE trace_type = 'CPU' AND query_id = (SELECT query_id FROM system.query_log "
	                 "WHERE query LIKE '%%/* %s */%%')",
	                 mark);

	printf("%s: %.2f ms inside, cpu_time_ns %.2f ms, sampled %.2f ms\n", mark, (double)inside / 1e6,
	       (double)logged / 1e6, (double)sampled / 1e6);
	/* The first call on a thread begins its sampling before the query, which takes some 0.1 ms for each
	 * thread. */
	assert_true((double)logged >= 0.999 * (double)inside - 2e6);
	assert_true((double)logged <= 1.03 * (double)inside + 2e6);
	assert_true((double)sampled > 0.85 * (double)inside && (double)sampled < 1.15 * (double)inside);
}

/* The statement begins and finishes on one thread. Other threads, which end, fetch one row each. A row takes
 * some 0.3 s, because a thread's time after its last tick, some ms on a busy machine, has no sample. */
static void test_threads_that_end(void **state)
{
	sqlite3 *db = open_with_numbers("PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	struct stepper stepper = { .stmt = prepare_rows(db, "ending", 2000000) };

	(void)state;
	step_timed(&stepper);
	for (int i = 0; i < 7; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, step_once, &stepper), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(sqlite3_step(stepper.stmt), SQLITE_DONE);
	sqlite3_finalize(stepper.stmt);
	host_quiet(db);
	expect_cpu_time(db, "ending", stepper.inside);
	assert_int_equal(
		host_int(db, "SELECT count(DISTINCT thread_id) FROM system.trace_log WHERE query_id = "
	                     "(SELECT query_id FROM system.query_log WHERE query LIKE '%%/* ending */%%')"),
		8);
	host_close(db);
}

/* Two threads that stay take turns. */
static void test_threads_in_turns(void **state)
{
	sqlite3 *db = open_with_numbers("PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	pthread_barrier_t go;
	struct stepper first = { .stmt = prepare_rows(db, "turns", 500000) };
	struct stepper second = { .stmt = first.stmt, .go = &go, .steps = 4 };
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&go, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, step_in_turns, &second), 0);
	for (int i = 0; i < 4; i++) {
		step_timed(&first);
		pthread_barrier_wait(&go);
		pthread_barrier_wait(&go);
	}
	assert_int_equal(sqlite3_step(first.stmt), SQLITE_DONE);
	sqlite3_finalize(first.stmt);
	pthread_barrier_wait(&go);
	pthread_join(thread, NULL);
	host_quiet(db);
	expect_cpu_time(db, "turns", first.inside + second.inside);
	host_close(db);
}

/* One connection, four threads: each sample has the statement of its own thread. */
struct sharer {
	sqlite3 *db;
	char mark[16];
	int thread_id;
};

static void *share(void *context)
{
	struct sharer *sharer = context;
	sqlite3_stmt *stmt;

	/* The statement has several rows, so that threads let each other in. */
	for (int i = 0; i < 3; i++) {
		stmt = prepare_rows(sharer->db, sharer->mark, 60000);
		while (sqlite3_step(stmt) == SQLITE_ROW)
			;
		sqlite3_finalize(stmt);
	}
	return NULL;
}

static void test_shared_connection(void **state)
{
	sqlite3 *db = open_with_numbers("PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	struct sharer sharers[4];
	pthread_t threads[4];
	int64_t wrong;

	(void)state;
	for (int i = 0; i < 4; i++) {
		sharers[i] = (struct sharer){ .db = db };
		snprintf(sharers[i].mark, sizeof(sharers[i].mark), "sharer %d", i);
		assert_int_equal(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	host_quiet(db);
	wrong = host_int(
		db, "SELECT count(*) FROM system.trace_log AS t JOIN system.query_log AS q USING (query_id) "
		    "WHERE q.query LIKE '%%/* sharer _ */%%' AND t.thread_id <> q.thread_id");
	printf("%lld samples on %lld threads\n",
	       (long long)host_int(db, "SELECT count(*) FROM system.trace_log"),
	       (long long)host_int(db, "SELECT count(DISTINCT thread_id) FROM system.trace_log"));
	assert_int_equal(wrong, 0);
	assert_int_equal(
		host_int(db,
	                 "SELECT count(*) FROM (SELECT thread_id FROM system.query_log WHERE query "
	                 "LIKE '%%/* sharer _ */%%' GROUP BY thread_id HAVING count(DISTINCT query) = 1)"),
		4);
	assert_int_equal(
		host_int(db, "SELECT count(*) FROM system.query_log WHERE query LIKE '%%/* sharer _ */%%' "
	                     "AND result_rows = 8"),
		12);
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_that_end),
		cmocka_unit_test(test_threads_in_turns),
		cmocka_unit_test(test_shared_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
