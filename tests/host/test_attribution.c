/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sample names the query that its thread was running, and no other query.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct worker {
	const char *mark;
	int thread_id;
	pthread_barrier_t *start;
	int64_t began_ns; /* after the settings took effect */
	uint64_t inside;
};

static void *work(void *context)
{
	struct worker *worker = context;
	struct timespec now;
	sqlite3 *db;

	worker->thread_id = (int)syscall(SYS_gettid);
	db = host_open(":memory:");
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	              "PRAGMA query_profiler_real_time_period_ns = 1000000");
	pthread_barrier_wait(worker->start);
	clock_gettime(CLOCK_REALTIME, &now);
	worker->began_ns = now.tv_sec * 1000000000 + now.tv_nsec;
	worker->inside = host_burn(db, 500000000, worker->mark);
	host_close(db);
	return NULL;
}

static void test_two_threads(void **state)
{
	pthread_barrier_t start;
	struct worker workers[2] = { { .mark = "red" }, { .mark = "blue" } };
	pthread_t threads[2];
	sqlite3 *db;

	(void)state;
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++) {
		workers[i].start = &start;
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);

	db = host_open(":memory:");
	host_quiet(db);
	for (int i = 0; i < 2; i++) {
		const struct worker *own = &workers[i], *other = &workers[!i];
		int64_t right, wrong, sampled;

		right = host_int(
			db,
			"SELECT count(*) FROM system.trace_log t JOIN system.query_log q USING (query_id) "
			"WHERE t.thread_id = %d AND q.query LIKE '%%/* %s */%%'",
			own->thread_id, own->mark);
		wrong = host_int(
			db,
			"SELECT count(*) FROM system.trace_log t JOIN system.query_log q USING (query_id) "
			"WHERE t.thread_id = %d AND q.query LIKE '%%/* %s */%%'",
			own->thread_id, other->mark);
		sampled = host_int(db,
		                   "SELECT coalesce(sum(t.weight * t.period_ns), 0) FROM system.trace_log t "
		                   "JOIN system.query_log q USING (query_id) WHERE t.trace_type = 'CPU' AND "
		                   "q.query LIKE '%%/* %s */%%'",
		                   own->mark);
		printf("%s: %lld samples of its own, %lld of the other's, %.1f ms sampled of %.1f ms\n",
		       own->mark, (long long)right, (long long)wrong, (double)sampled / 1e6,
		       (double)own->inside / 1e6);
		assert_true(right > 100);
		assert_int_equal(wrong, 0);
		assert_true((double)sampled > 0.9 * (double)own->inside &&
		            (double)sampled < 1.1 * (double)own->inside);
		/* From began_ns on, every sample belongs to a query in the log. The PRAGMAs before it are
		 * not in the log, and the second one may have a sample. */
		assert_int_equal(
			host_int(
				db,
				"SELECT count(*) FROM system.trace_log WHERE thread_id = %d AND timestamp_ns "
				">= %lld AND query_id NOT IN (SELECT query_id FROM system.query_log)",
				own->thread_id, (long long)own->began_ns),
			0);
	}
	host_close(db);
}

/* Two statements are stepped alternately on one thread. Each sample belongs to its own statement. */
static void test_interleaved(void **state)
{
	sqlite3 *db = host_open(":memory:");
	sqlite3_stmt *heavy, *light;
	int64_t heavy_ns, light_ns;

	(void)state;
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	              "CREATE TABLE n(x); INSERT INTO n VALUES (1), (2), (3), (4), (5), (6), (7), (8)");
	assert_int_equal(
		sqlite3_prepare_v2(db,
	                           "SELECT /* heavy */ x, (WITH RECURSIVE c(y) AS (SELECT n.x UNION ALL "
	                           "SELECT y + 1 FROM c WHERE y < 900000) SELECT sum(y) FROM c) FROM n",
	                           -1, &heavy, NULL),
		0);
	assert_int_equal(
		sqlite3_prepare_v2(db,
	                           "SELECT /* light */ x, (WITH RECURSIVE c(y) AS (SELECT n.x UNION ALL "
	                           "SELECT y + 1 FROM c WHERE y < 300000) SELECT sum(y) FROM c) FROM n",
	                           -1, &light, NULL),
		0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(sqlite3_step(heavy), SQLITE_ROW);
		assert_int_equal(sqlite3_step(light), SQLITE_ROW);
	}
	assert_int_equal(sqlite3_step(heavy), SQLITE_DONE);
	assert_int_equal(sqlite3_step(light), SQLITE_DONE);
	sqlite3_finalize(heavy);
	sqlite3_finalize(light);
	host_quiet(db);
	heavy_ns = host_sampled_ns(
		db, "query_id = (SELECT query_id FROM system.query_log WHERE query LIKE '%/* heavy */%')");
	light_ns = host_sampled_ns(
		db, "query_id = (SELECT query_id FROM system.query_log WHERE query LIKE '%/* light */%')");
	printf("heavy %.1f ms, light %.1f ms\n", (double)heavy_ns / 1e6, (double)light_ns / 1e6);
	assert_true(heavy_ns > 2 * light_ns && heavy_ns < 4 * light_ns);
	assert_int_equal(
		host_int(db, "SELECT result_rows FROM system.query_log WHERE query LIKE '%%/* heavy */%%'"),
		8);
	host_close(db);
}

/* SQL inside SQL belongs to the statement that the program ran. If a function of the program runs it, it
 * also has a row of its own. */
static void run_inner(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	char *sql = host_burn_sql(5, "inner"); /* more than ten ticks on any machine */

	(void)argc, (void)argv;
	assert_int_equal(sqlite3_exec(sqlite3_context_db_handle(context), sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_free(sql);
	sqlite3_result_int(context, 1);
}

static void test_nested(void **state)
{
	sqlite3 *db = host_open(":memory:");

	(void)state;
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	sqlite3_create_function(db, "run_inner", 0, SQLITE_UTF8, NULL, run_inner, NULL, NULL);
	host_exec(db, "SELECT /* outer */ run_inner()");
	host_quiet(db);
	assert_true(host_int(db,
	                     "SELECT count(*) FROM system.trace_log WHERE query_id = (SELECT query_id FROM "
	                     "system.query_log WHERE query LIKE '%%/* outer */%%')") > 10);
	assert_int_equal(
		host_int(db,
	                 "SELECT count(*) FROM system.query_log AS i JOIN system.query_log AS o "
	                 "ON i.initial_query_id = o.query_id WHERE i.query LIKE '%%/* inner */%%' AND "
	                 "o.query LIKE '%%/* outer */%%' AND i.query_id <> o.query_id AND "
	                 "o.initial_query_id = o.query_id AND i.result_rows = 1 AND "
	                 "i.query_duration_ns <= o.query_duration_ns AND i.cpu_time_ns <= o.cpu_time_ns AND "
	                 "i.samples_cpu > 0.8 * o.samples_cpu AND i.samples_cpu <= o.samples_cpu AND "
	                 "i.weight_cpu <= o.weight_cpu"),
		1);
	assert_int_equal(
		host_int(db, "SELECT count(*) FROM system.trace_log WHERE query_id = (SELECT query_id FROM "
	                     "system.query_log WHERE query LIKE '%%/* inner */%%')"),
		0);
	host_close(db);
}

/* A statement that is reset, finalized or fails in the middle also has a row. */
static void test_ends(void **state)
{
	sqlite3 *db = host_open(":memory:");
	sqlite3_stmt *stmt;
	char *text;

	(void)state;
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000; SELECT set_setting("
	              "'log_queries_min_query_duration_ns', '0')");
	assert_int_equal(
		sqlite3_prepare_v2(db, "SELECT /* reset */ value FROM json_each('[1,2,3]')", -1, &stmt, NULL),
		0);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	sqlite3_reset(stmt);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	sqlite3_finalize(stmt);
	assert_int_equal(
		sqlite3_exec(db, "SELECT /* fails */ abs(-9223372036854775807 - 1)", NULL, NULL, NULL),
		SQLITE_ERROR);
	host_quiet(db);
	assert_int_equal(host_int(db, "SELECT count(*) FROM system.query_log WHERE query LIKE '%%/* reset "
	                              "*/%%json_each%%'"),
	                 2);
	assert_int_equal(host_int(db, "SELECT sum(result_rows) FROM system.query_log WHERE query LIKE '%%/* "
	                              "reset */%%json_each%%'"),
	                 3);
	text = host_text(db, "SELECT type || ' ' || exception_code || ' ' || exception FROM system.query_log "
	                     "WHERE query LIKE '%%/* fails */%%'");
	assert_string_equal(text, "ExceptionWhileProcessing 1 integer overflow");
	free(text);
	host_close(db);
}

/* A function leaves SQLite by longjmp(), as script languages do with errors. The thread's next query is
 * not mistaken for the abandoned one, and the timers stop. */
static jmp_buf way_out;

static void jump_out(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)context, (void)argc, (void)argv;
	longjmp(way_out, 1);
}

static void test_long_jump(void **state)
{
	sqlite3 *db = host_open(":memory:"), *left;
	int64_t idle, runs;

	(void)state;
	host_quiet(db);
	assert_int_equal(sqlite3_open(":memory:", &left), SQLITE_OK);
	host_exec(left, "PRAGMA query_profiler_real_time_period_ns = 1000000; "
	                "PRAGMA query_profiler_cpu_time_period_ns = 0");
	sqlite3_create_function(left, "jump_out", 0, SQLITE_UTF8, NULL, jump_out, NULL, NULL);
	runs = host_metric(db, "query_profiler_runs");
	if (!setjmp(way_out))
		sqlite3_exec(left, "SELECT /* left */ jump_out()", NULL, NULL, NULL);
	/* A host that runs no query gets at most one signal. A few more may come while the metric is read,
	 * deeper in the stack. */
	while (host_metric(db, "query_profiler_runs") == runs)
		;
	idle = host_metric(db, "query_profiler_runs");
	for (uint64_t start = host_now(); host_now() - start < 100000000;)
		;
	assert_true(host_metric(db, "query_profiler_runs") <= idle + 10);
	host_exec(left, "%s", host_burn_sql(2, "after the jump"));
	assert_true(host_int(db,
	                     "SELECT count(*) FROM system.trace_log WHERE trace_type = 'Real' AND query_id = "
	                     "(SELECT query_id FROM system.query_log WHERE query LIKE '%%/* after the jump "
	                     "*/%%')") > 20);
	host_close(db);
	/* `left` is leaked, because the abandoned call still holds it. */
}

/* The time to prepare a statement belongs to the statement. Here SQLite first reads the schema and waits
 * for its lock. */
static int release_lock(void *holder, int count)
{
	static uint64_t first_ns;

	if (count == 0)
		first_ns = host_now();
	if (host_now() - first_ns < 500000000)
		usleep(10000);
	else
		host_exec(holder, "COMMIT");
	return 1;
}

static void test_prepare(void **state)
{
	char path[128], *text;
	sqlite3 *holder, *db;
	sqlite3_stmt *stmt;
	int64_t real, duration;

	(void)state;
	snprintf(path, sizeof(path), "%s/prepare.db", host_directory());
	assert_int_equal(sqlite3_open(path, &holder), SQLITE_OK);
	host_exec(holder, "CREATE TABLE t(x); BEGIN EXCLUSIVE");
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	host_exec(db, "PRAGMA query_profiler_real_time_period_ns = 1000000");
	/* fails, first immediately, then after its timeout */
	sqlite3_busy_timeout(db, 100);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT /* impatient */ * FROM t", -1, &stmt, NULL),
	                 SQLITE_BUSY);
	sqlite3_busy_handler(db, release_lock, holder);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT /* patient */ * FROM t", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_sleep(300) >= 300, 1); /* time outside SQLite */
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	sqlite3_finalize(stmt);
	host_quiet(db);
	real = host_sampled_ns(db,
	                       "trace_type = 'Real' AND query_id = (SELECT query_id FROM system.query_log "
	                       "WHERE query LIKE '%/* patient */%')");
	duration = host_int(
		db, "SELECT query_duration_ns FROM system.query_log WHERE query LIKE '%%/* patient */%%'");
	printf("prepared in %.1f ms, of which %.1f ms sampled\n", (double)duration / 1e6, (double)real / 1e6);
	assert_true(duration > 450000000);
	assert_true((double)real > 0.9 * (double)duration && (double)real < 1.1 * (double)duration);
	text = host_text(db, "SELECT type || ' ' || exception FROM system.query_log WHERE query LIKE '%%/* "
	                     "impatient */%%'");
	assert_string_equal(text, "ExceptionWhileProcessing database is locked");
	free(text);
	host_close(db);
	host_close(holder);
}

/* Sorter threads belong to the query that created them. */
static void test_sorter_threads(void **state)
{
	char path[128];
	sqlite3 *db;
	int64_t other, own;

	(void)state;
	snprintf(path, sizeof(path), "%s/sorter.db", host_directory());
	db = host_open(path);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000; PRAGMA threads = 2;"
	              "PRAGMA synchronous = OFF; PRAGMA cache_size = -1000; CREATE TABLE t(a, b);"
	              "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000) "
	              "INSERT INTO t SELECT x, hex(randomblob(12)) FROM c");
	host_exec(db, "CREATE INDEX /* sorter */ i ON t(b)");
	host_quiet(db);
	own = host_int(
		db,
		"SELECT count(*) FROM system.trace_log WHERE thread_id = %d AND query_id = (SELECT query_id "
		"FROM system.query_log WHERE query LIKE 'CREATE INDEX%%')",
		(int)syscall(SYS_gettid));
	other = host_int(
		db,
		"SELECT count(*) FROM system.trace_log WHERE thread_id <> %d AND query_id = (SELECT query_id "
		"FROM system.query_log WHERE query LIKE 'CREATE INDEX%%')",
		(int)syscall(SYS_gettid));
	printf("CREATE INDEX: %lld samples on its thread, %lld on sorter threads\n", (long long)own,
	       (long long)other);
	assert_true(own > 0 && other > 0);
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_threads),    cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_nested),         cmocka_unit_test(test_ends),
		cmocka_unit_test(test_prepare),        cmocka_unit_test(test_long_jump),
		cmocka_unit_test(test_sorter_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
