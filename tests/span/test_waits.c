/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of statements are spans of the thread's trace.
 */
#include <pthread.h>
#include <queryprof.h>
#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../lib/must.h"
#include "../lib/turns.h"
#include "support.h"

static char database[64];
static sqlite3 *db;

static void begin(void)
{
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

/* SQL function of the host: nap(us) sleeps, nap(us, 1) sleeps inside a span. */
static void nap(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	if (argc > 1) {
		QP_SPAN("napping");
		sleep_us(sqlite3_value_int(argv[0]));
	} else {
		sleep_us(sqlite3_value_int(argv[0]));
	}
	sqlite3_result_int(context, 1);
}

static sqlite3 *open_database(void)
{
	sqlite3 *opened;

	if (sqlite3_open(database, &opened) || qp_attach(opened))
		fail_msg("%s", qp_error());
	sqlite3_create_function(opened, "nap", -1, SQLITE_UTF8, NULL, nap, NULL, NULL);
	return opened;
}

static int set_up(void **state)
{
	int fd;

	set_up_file(state);
	set("log_queries_min_query_duration_ns", "0"); /* applies to connections opened later */
	strcpy(database, "/tmp/queryprof-span-waits-XXXXXX");
	fd = mkstemp(database);
	close(fd);
	db = open_database();
	must_exec(db, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
	return 0;
}

static int tear_down(void **state)
{
	sqlite3_close(db);
	unlink(database);
	return tear_down_file(state);
}

#define NAP "wait: user function (sleep)"

static void are_children_of_their_statement(void **state)
{
	(void)state;
	begin();
	{
		QP_SPAN("one nap");
		must_exec(db, "SELECT nap(20000) AS slept");
	}
	qp_trace_end();
	must_exec(db, "SELECT nap(20000) AS outside");
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = '" NAP "'"), 1);
	/* A thread's two clocks may differ by 1 us. */
	assert_int_equal(ask("SELECT w.duration_ns >= 20000000 AND w.start_time_ns >= s.start_time_ns - 1000 "
	                     "AND w.finish_time_ns <= s.finish_time_ns + 1000 AND s.waits = 1 AND "
	                     "s.wait_time_ns = w.duration_ns AND s.self_time_ns = s.duration_ns - "
	                     "w.duration_ns AND r.waits = 1 AND r.wait_time_ns = w.duration_ns FROM "
	                     "span_log AS w JOIN span_log AS s ON s.span_id = w.parent_span_id JOIN span_log "
	                     "AS r ON r.span_id = s.parent_span_id WHERE w.operation_name = '" NAP "' AND "
	                     "s.operation_name = 'SELECT nap(20000) AS slept' AND r.operation_name = 'one "
	                     "nap'"),
	                 1);
	assert_int_equal(
		ask("SELECT t.wait_time_ns = w.duration_ns FROM traces AS t JOIN span_log AS w USING "
	            "(trace_id) WHERE t.root = 'one nap' AND w.operation_name = '" NAP "'"),
		1);
	/* query_log has the same time, minus the CPU time that the thread used in the call. */
	assert_int_equal(ask("SELECT q.sleep_ns > 0 AND q.sleep_ns <= s.wait_time_ns FROM span_log AS s JOIN "
	                     "query_log AS q USING (query_id) WHERE s.operation_name = 'SELECT nap(20000) AS "
	                     "slept'"),
	                 1);
}

static void of_a_span_inside_are_its_children(void **state)
{
	(void)state;
	begin();
	must_exec(db, "SELECT nap(5000, 1)");
	qp_trace_end();
	assert_int_equal(
		ask("SELECT count(*) FROM span_log AS w JOIN span_log AS n ON n.span_id = "
	            "w.parent_span_id WHERE n.operation_name = 'napping' AND w.operation_name = '" NAP
	            "' AND n.wait_time_ns = w.duration_ns"),
		1);
}

static sem_t locked, refused;

/* A busy handler. The holder keeps the lock until it has run once, however late. */
static int wait_for_lock(void *unused, int count)
{
	(void)unused;
	if (count == 0)
		sem_post(&refused);
	sleep_us(1000);
	return 1;
}

static void *hold_lock(void *unused)
{
	sqlite3 *other = open_database();

	must_exec(other, "BEGIN EXCLUSIVE");
	sem_post(&locked);
	sem_wait(&refused);
	sleep_us(5000);
	must_exec(other, "COMMIT");
	sqlite3_close(other);
	return unused;
}

static void for_locks_have_the_lock_s_name(void **state)
{
	pthread_t thread;

	(void)state;
	sem_init(&locked, 0, 0);
	sem_init(&refused, 0, 0);
	sqlite3_busy_handler(db, wait_for_lock, NULL);
	assert_int_equal(pthread_create(&thread, NULL, hold_lock, NULL), 0);
	sem_wait(&locked);
	begin();
	must_exec(db, "UPDATE t SET x = 2");
	qp_trace_end();
	pthread_join(thread, NULL);
	assert_int_equal(
		ask("SELECT count(*) > 0 AND sum(w.duration_ns) >= q.lock_wait_ns AND q.lock_wait_ns > "
	            "0 FROM span_log AS w JOIN span_log AS s ON s.span_id = w.parent_span_id JOIN "
	            "query_log AS q ON q.query_id = s.query_id WHERE w.operation_name LIKE 'wait: "
	            "lock (%)' AND q.query = 'UPDATE t SET x = 2'"),
		1);
}

#define TURNS 400

/* Returns the number of turns that took 2 to 9 us and had a context switch. */
static void pass_to_and_fro(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int count = 0;

	(void)argc, (void)argv;
	begin_turns(TURNS);
	for (int i = 0; i < TURNS; i++) {
		struct turn turn = take_turn();
		count += turn.ns > 2000 && turn.ns < 9000 && turn.switched;
	}
	end_turns();
	sqlite3_result_int(context, count);
}

static int take_number(void *to, int count, char **values, char **names)
{
	(void)count, (void)names;
	*(int *)to = atoi(values[0]);
	return 0;
}

static void may_take_microseconds(void **state)
{
	int64_t spans;
	int turns = 0;

	(void)state;
	sqlite3_create_function(db, "pass_to_and_fro", 0, SQLITE_UTF8, NULL, pass_to_and_fro, NULL, NULL);
	begin();
	assert_int_equal(sqlite3_exec(db, "SELECT pass_to_and_fro()", take_number, &turns, NULL), SQLITE_OK);
	qp_trace_end();
	spans = ask("SELECT count(*) FROM span_log AS w JOIN span_log AS s ON s.span_id = w.parent_span_id"
	            " WHERE s.operation_name = 'SELECT pass_to_and_fro()' AND w.duration_ns < 10000 AND"
	            " w.operation_name = 'wait: user function (condition)'");
	printf("  %d turns of 2 to 9 us, %d spans below 10 us\n", turns, (int)spans);
	/* A wait may count as none in two cases. It is as short as the reading of the CPU clock after it,
	 * or another thread ran during the reading. */
	assert_true(spans >= turns * 9 / 10);
}

/* More waits than a thread's array holds. None is lost. */
static void may_be_many(void **state)
{
	(void)state;
	begin();
	{
		QP_SPAN("many naps");
		must_exec(db, "WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2500) SELECT "
		              "sum(nap(1)) AS many FROM c");
	}
	qp_trace_end();
	/* If another thread ran meanwhile, a sleep may not count as a wait. */
	assert_in_range(ask("SELECT waits FROM span_log WHERE operation_name LIKE '%AS many FROM c' AND "
	                    "operation_name NOT LIKE 'prepare%'"),
	                1001, 2500);
	assert_int_equal(
		ask("SELECT s.waits = count(*) AND s.wait_time_ns = sum(w.duration_ns) AND s.self_time_ns = "
	            "s.duration_ns - sum(w.duration_ns) FROM span_log AS s JOIN span_log AS w ON "
	            "w.parent_span_id = s.span_id WHERE s.operation_name LIKE '%AS many FROM c' AND "
	            "s.operation_name NOT LIKE 'prepare%'"),
		1);
	assert_int_equal(ask("SELECT dropped = 0 AND wait_time_ns = (SELECT wait_time_ns FROM span_log WHERE "
	                     "operation_name = 'many naps') FROM traces WHERE root = 'many naps'"),
	                 1);
}

static void are_none_where_statements_are_none(void **state)
{
	int64_t before = ask("SELECT count(*) FROM span_waits");

	(void)state;
	set("trace_statements", "off");
	begin();
	must_exec(db, "SELECT nap(5000)");
	qp_trace_end();
	set("trace_statements", "DEFAULT");
	assert_int_equal(ask("SELECT count(*) FROM span_waits"), before);
}

static volatile sig_atomic_t handled;

static void sleep_in_handler(int number)
{
	(void)number;
	handled++;
	sleep_us(1);
}

#define HANDLED 100

/* Records spans until the host's signal handler has waited inside many of them. */
static void record_many(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction handler = { .sa_handler = sleep_in_handler }, before;
	int count = 0;

	(void)argc;
	(void)argv;
	sigaction(SIGALRM, &handler, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < HANDLED) {
		QP_SPAN("interrupted");
		count++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	sqlite3_result_int(context, count);
}

static void may_be_of_a_signal_handler(void **state)
{
	sqlite3_stmt *stmt;
	int64_t count, dropped = metric("spans_dropped"), waits = ask("SELECT count(*) FROM span_waits"),
		       others = ask("SELECT sum(count - statements) FROM span_batches");

	(void)state;
	set("trace_wait_ms", "60000");
	sqlite3_create_function(db, "record_many", 0, SQLITE_UTF8, NULL, record_many, NULL, NULL);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT record_many()", -1, &stmt, NULL), SQLITE_OK);
	begin();
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	count = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	qp_trace_end();
	set("trace_wait_ms", "DEFAULT");
	printf("%lld spans\n", (long long)count);
	assert_int_equal(metric("spans_dropped"), dropped);
	/* All spans of the host are stored. A wait is lost if it happens while chunks are exchanged. */
	assert_int_equal(ask("SELECT sum(count - statements) FROM span_batches") - others,
	                 count + ask("SELECT count(*) FROM span_waits") - waits);
	assert_in_range(ask("SELECT count(*) FROM span_waits") - waits, 1, HANDLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_children_of_their_statement),
		cmocka_unit_test(of_a_span_inside_are_its_children),
		cmocka_unit_test(for_locks_have_the_lock_s_name),
		cmocka_unit_test(may_take_microseconds),
		cmocka_unit_test(may_be_many),
		cmocka_unit_test(are_none_where_statements_are_none),
		cmocka_unit_test(may_be_of_a_signal_handler),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
