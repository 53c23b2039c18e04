/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of statements in the file: summed over flushes and processes, bounded, and not lost while the file
 * cannot be written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query/statement_stats.h"
#include "collect/state.h"
#include "support.h"

static void count(const char *text, uint64_t execution_ns)
{
	const struct statement_name name = { .text = text, .database = "/data/app.db" };
	const struct statement_run run = {
		.sums = {
			[STATEMENT_CALLS] = 1,
			[STATEMENT_ROWS] = 3,
			[STATEMENT_EXECUTION_NS] = execution_ns,
			[STATEMENT_CPU_NS] = execution_ns / 2,
			[STATEMENT_SORTS] = 1,
		},
		.seen_ns = T0 + execution_ns,
	};

	statement_stats_add(statement_stats_find(&name), 1, &run);
}

/* Starts a store with the ring in which the counters are published. */
static void start_counted(const char *path, int64_t max_bytes)
{
	start_store(path, max_bytes);
	state_ring = ring;
}

static int end(void **state)
{
	state_ring = NULL;
	return tear_down(state);
}

/* Like set_up(), with all counters empty. Only drain() flushes: otherwise a flush between two runs of a
 * statement could find it among the least used (seen on a loaded machine). */
static int begin(void **state)
{
	flush_interval_ns = INT64_C(3600000000000);
	statement_stats_reset_in_child();
	statement_stats_set_max(STATEMENTS_MAX_DEFAULT);
	return set_up(state);
}

#define ROW                                                                                                  \
	"SELECT calls || '|' || rows || '|' || execution_time_ns || '|' || cpu_time_ns || '|' || min_ns || " \
	"'|' || max_ns || '|' || sorts || '|' || first_seen_ns || '|' || last_seen_ns || '|' || histogram "  \
	"FROM statement_stats"

static void flushes_add_up(void **state)
{
	(void)state;
	start_counted(trace_path, 0);
	count("SELECT a FROM t WHERE b = 1", 1500);
	drain();
	assert_string_equal(
		ask_text("SELECT query || '|' || database || '|' || (normalized_query_hash = (SELECT "
	                 "normalized_query_hash FROM statements)) FROM statement_stats"),
		"SELECT a FROM t WHERE b = 1|/data/app.db|1");
	assert_int_equal(
		ask("SELECT count(*) FROM statement_stats WHERE program LIKE '%/test_store_statements'"), 1);
	count("SELECT a FROM t WHERE b = 2", 500);
	count("SELECT a FROM t WHERE b = 3", 5000);
	drain();
	assert_string_equal(ask_text(ROW), "3|9|7000|3500|500|5000|3|1790000000000000500|1790000000000005000|"
	                                   "[1,1,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]");
	assert_true(ask("SELECT execution_time_square = 1500 * 1500 + 500 * 500 + 5000 * 5000 FROM "
	                "statement_stats"));
	state_ring = NULL;
	stop_store();
	/* After a restart, the file has the earlier counts. */
	start_counted(trace_path, 0);
	count("SELECT a FROM t WHERE b = 4", 100);
	drain();
	assert_int_equal(ask("SELECT calls FROM statement_stats"), 4);
	assert_int_equal(ask("SELECT min_ns FROM statement_stats"), 100);
	assert_int_equal(ask("SELECT runs FROM top_queries"), 4);
	/* There is no batch that followers of the file would read. */
	assert_int_equal(ask("SELECT count(*) FROM batches"), 0);
}

static void a_preparation_leaves_no_least_time(void **state)
{
	const struct statement_name name = { .text = "SELECT once", .database = NULL };
	const struct statement_run prepared = { .sums = { [STATEMENT_PREPARES] = 1 }, .seen_ns = T0 };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1, [STATEMENT_EXECUTION_NS] = 70 },
		                           .seen_ns = T0 };

	(void)state;
	start_counted(trace_path, 0);
	statement_stats_add(statement_stats_find(&name), 1, &prepared);
	drain();
	assert_int_equal(ask("SELECT min_ns IS NULL FROM statement_stats"), 1);
	statement_stats_add(statement_stats_find(&name), 1, &run);
	drain();
	assert_int_equal(ask("SELECT min_ns FROM statement_stats"), 70);
}

static void processes_add_up(void **state)
{
	int status;

	(void)state;
	start_counted(trace_path, 0);
	count("SELECT shared", 10);
	drain();
	state_ring = NULL;
	stop_store();
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			statement_stats_reset_in_child();
			start_counted(trace_path, 0);
			count("SELECT shared", 20);
			drain();
			state_ring = NULL;
			stop_store();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	start_counted(trace_path, 0);
	count("SELECT shared", 10);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM statement_stats"), 1);
	assert_int_equal(ask("SELECT calls FROM statement_stats"), 5);
	assert_int_equal(ask("SELECT execution_time_ns FROM statement_stats"), 80);
}

#define BATCH(text)                                                                                          \
	ask("SELECT batch FROM statement_counters WHERE statement = (SELECT id FROM statements WHERE query " \
	    "= '" text "')")
#define BATCHES ask("SELECT statement_batches FROM state")

/* Followers of the file find the rows that a transaction changed, whenever the runs began. */
static void transactions_with_counters_have_numbers(void **state)
{
	int64_t first, second;

	(void)state;
	start_counted(trace_path, 0);
	count("SELECT young", 5000);
	count("SELECT both", 5000);
	drain();
	first = BATCH("SELECT young");
	assert_true(first > 0);
	assert_int_equal(BATCH("SELECT both"), first);
	count("SELECT old", 10);
	count("SELECT both", 10);
	drain();
	second = BATCH("SELECT old");
	assert_true(second > first);
	assert_int_equal(BATCH("SELECT both"), second);
	assert_int_equal(BATCH("SELECT young"), first);
	assert_int_equal(BATCHES, second);
	/* A transaction that merges statements has a number, too. */
	statement_stats_set_max(2);
	count("SELECT young", 1);
	count("SELECT both", 1);
	drain();
	assert_int_equal(ask("SELECT batch FROM statement_counters WHERE normalized_query_hash = 0"),
	                 BATCHES);
	assert_true(BATCHES > second);
	assert_int_equal(
		ask("SELECT count(*) FROM statement_counters WHERE batch > (SELECT statement_batches FROM "
	            "state)"),
		0);
}

static void count_many(int shapes, int from, int at_once)
{
	char text[64];

	for (int i = 0; i < shapes; i++) {
		snprintf(text, sizeof(text), "SELECT a FROM t%d", from + i);
		for (int run = 0; run < (i % 8 ? 1 : 9); run++)
			count(text, 100);
		if (i % at_once == at_once - 1)
			drain();
	}
	drain();
}

/* The bound holds for all processes together. */
static void the_least_used_are_other(void **state)
{
	(void)state;
	statement_stats_set_max(32);
	start_counted(trace_path, 0);
	count_many(80, 0, 10);
	state_ring = NULL;
	stop_store();
	statement_stats_reset_in_child();
	start_counted(trace_path, 0);
	count_many(80, 1000, 10);
	assert_true(ask("SELECT count(*) FROM statement_stats") <= 33);
	assert_int_equal(ask("SELECT sum(calls) FROM statement_stats"), 320);
	assert_int_equal(ask("SELECT sum(execution_time_ns) FROM statement_stats"), 32000);
	assert_int_equal(ask("SELECT normalized_query_hash FROM statement_stats WHERE query = '(other)'"), 0);
	assert_int_equal(ask("SELECT min(calls) FROM statement_stats WHERE query IN ('SELECT a FROM t0', "
	                     "'SELECT a FROM t1072')"),
	                 9);
	/* Their texts were removed with them. */
	assert_true(ask("SELECT count(*) FROM statements") <= 33);
	assert_int_equal(ask("SELECT sum(calls) FROM statement_stats WHERE query IS NULL"), 0);
}

static void what_cannot_be_stored_waits(void **state)
{
	(void)state;
	mkdir(trace_path, 0700);
	start_counted(trace_path, 0);
	for (int i = 0; i < 10; i++) {
		count("SELECT waiting", 7);
		store_drain(2000);
	}
	assert_true(has_error());
	rmdir(trace_path);
	count("SELECT waiting", 7);
	assert_eventually((count("SELECT waiting", 0), store_drain(2000), !has_error()));
	assert_int_equal(ask("SELECT execution_time_ns FROM statement_stats"), 77);
}

/* No run follows, so the last flush stores only these counters. */
static void what_could_not_be_stored_is_at_the_end(void **state)
{
	(void)state;
	mkdir(trace_path, 0700);
	start_counted(trace_path, 0);
	count("SELECT waiting", 7);
	drain();
	assert_true(has_error());
	rmdir(trace_path);
	stop_store();
	assert_string_equal(ask_file(trace_path, "SELECT sum(calls) FROM statement_counters"), "1");
}

/* The whole transaction fails. */
static void what_was_rolled_back_is_at_the_end(void **state)
{
	(void)state;
	start_counted(trace_path, 0);
	count("SELECT waiting", 7);
	drain();
	ask_file(trace_path, "CREATE UNIQUE INDEX refuse ON statement_counters (sorts)");
	count("SELECT other", 7);
	drain();
	assert_true(has_error());
	ask_file(trace_path, "DROP INDEX refuse");
	stop_store();
	assert_string_equal(ask_file(trace_path, "SELECT sum(calls) FROM statement_counters"), "2");
}

/* Texts of counted statements stay when their runs are removed from the log. */
static void trimming_keeps_the_texts(void **state)
{
	struct a_query query = { .query = "SELECT kept", .record = { .query = { 1, 1 } } };

	(void)state;
	start_counted(trace_path, 1 << 20);
	count("SELECT kept", 5);
	query.record.start_realtime_ns = T0;
	put_query(&query);
	drain();
	for (uint64_t i = 0; i < 200; i++) {
		put_samples(T0 + 1000000000 * (i + 1), 1000, 50, (struct query_key){ 2, i });
		drain();
	}
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE query = 'SELECT kept'"), 0);
	assert_int_equal(ask("SELECT calls FROM statement_stats WHERE query = 'SELECT kept'"), 1);
	/* If nothing else is left to remove, the least used statements are removed. */
	statement_stats_set_max(STATEMENTS_MAX_MOST);
	for (int i = 0; i < 10; i++)
		count_many(400, 10000 + 400 * i, 400);
	assert_true(store_counter(STORE_BYTES) <= 1 << 20);
	assert_int_equal(ask("SELECT sum(calls) FROM statement_stats"), 1 + 10 * 800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flushes_add_up, begin, end),
		cmocka_unit_test_setup_teardown(a_preparation_leaves_no_least_time, begin, end),
		cmocka_unit_test_setup_teardown(processes_add_up, begin, end),
		cmocka_unit_test_setup_teardown(transactions_with_counters_have_numbers, begin, end),
		cmocka_unit_test_setup_teardown(the_least_used_are_other, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_stored_waits, begin, end),
		cmocka_unit_test_setup_teardown(what_could_not_be_stored_is_at_the_end, begin, end),
		cmocka_unit_test_setup_teardown(what_was_rolled_back_is_at_the_end, begin, end),
		cmocka_unit_test_setup_teardown(trimming_keeps_the_texts, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
