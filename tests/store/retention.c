/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound: file and log stay below it, the oldest rows go first, and the remaining rows are complete.
 *
 * The argument is how many times everything is written, default 1. 100 are as many samples as one thread has
 * in eight hours at 1 ms.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

#define MB (1 << 20)

static uint64_t times = 1;

static int64_t bytes_now(void)
{
	struct stat status;
	int64_t bytes = 0;
	char log[200];

	if (!stat(trace_path, &status))
		bytes += status.st_size;
	snprintf(log, sizeof(log), "%s-wal", trace_path);
	if (!stat(log, &status))
		bytes += status.st_size;
	return bytes;
}

static void assert_complete(void)
{
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE trace IS NULL OR query_id IS NULL"
	                     " OR thread_id IS NULL OR process_id IS NULL"),
	                 0);
	assert_int_equal(
		ask("SELECT count(*) FROM query_log WHERE query IS NULL OR initial_query_id IS NULL"), 0);
}

/* Writes many times the bound, each query with its own samples, and checks the size all the time. The flusher
 * may still trim after a drain, so the store is restarted without a bound. */
static void fill(int64_t bound, uint64_t rounds, size_t stacks)
{
	int64_t most = 0;

	start_store(trace_path, bound);
	for (uint64_t i = 0; i < rounds; i++) {
		char text[60];
		struct a_query query = { .record = { .query = { 0x0190000000007000ull + i, 1 },
			                             .start_realtime_ns = T0 + i * 10000000,
			                             .duration_ns = 1000000 },
			                 .query = text };

		snprintf(text, sizeof(text), "SELECT %llu", (unsigned long long)i);
		put_samples(T0 + i * 10000000, 1000, stacks, query.record.query);
		put_query(&query);
		if (bytes_now() > most)
			most = bytes_now();
	}
	drain();
	if (most > bound + bound / 10)
		fail_msg("%lld bytes, bound %lld", (long long)most, (long long)bound);
	/* The bound must not remove almost everything. */
	if (bytes_now() < bound / 2)
		fail_msg("only %lld bytes of %lld are used", (long long)bytes_now(), (long long)bound);
	stop_store();
	start_store(trace_path, 0);
}

static void oldest_go_first(void **state)
{
	uint64_t trimmed = store_counter(STORE_TRIMMED), stored = store_counter(STORE_SAMPLES);
	uint64_t lost = store_counter(STORE_LOST);
	const uint64_t rounds = 100 * times; /* twice as much as fits */
	int64_t left;

	(void)state;
	fill(2 * MB, rounds, 100);
	trimmed = store_counter(STORE_TRIMMED) - trimmed;
	stored = store_counter(STORE_SAMPLES) - stored;
	left = ask("SELECT count(*) FROM trace_log");
	assert_int_equal(store_counter(STORE_LOST) - lost, 0);
	assert_int_equal(stored, rounds * 1000);
	assert_int_equal(left + (int64_t)trimmed, rounds * 1000);
	assert_true(left > 20000);
	/* The newest samples are left, without a gap. */
	assert_int_equal(ask("SELECT max(timestamp_ns) FROM trace_log"),
	                 T0 + (rounds - 1) * 10000000ull + 999000);
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE timestamp_ns >= (SELECT min(timestamp_ns) "
	                     "FROM trace_log)"),
	                 left);
	assert_complete();
	/* Queries were removed with their samples, and texts with their queries. */
	assert_true(ask("SELECT count(*) FROM query_log") < 200);
	assert_true(ask("SELECT count(*) FROM query_log") >= left / 1000);
	assert_int_equal(ask("SELECT count(*) FROM statements"), ask("SELECT count(*) FROM query_log"));
	assert_true(ask("SELECT count(*) FROM epochs") < 100);
	stop_store();
	assert_intact(trace_path);
}

/* Every sample has a new stack, so stacks fill the file. */
static void stacks_go_when_unused(void **state)
{
	(void)state;
	fill(4 * MB, 60 * times, SIZE_MAX / 2);
	assert_complete();
	assert_true(ask("SELECT count(*) FROM stacks") < 20000);
	/* Most of the remaining stacks are used. The others belong to epochs that are not over. */
	assert_true(ask("SELECT count(*) FROM stacks WHERE id NOT IN (SELECT stack FROM samples)") <
	            ask("SELECT count(*) FROM stacks") / 2);
	stop_store();
	assert_intact(trace_path);
}

/* The flusher still knows the stacks that stay, while other stacks are removed and come again. */
static void stacks_come_again(void **state)
{
	uint64_t trace[] = { 0x7e0000000000 };

	(void)state;
	start_store(trace_path, MB);
	for (uint64_t i = 0; i < 70; i++) {
		const uint64_t start_ns = T0 + i * 10000000;

		put_samples(start_ns, 1000, 100, (struct query_key){ 0 });
		if (i % 30 == 0)
			put_sample((struct a_sample){
				.timestamp_ns = start_ns + 2000000, .trace = trace, .depth = 1 });
		if (i % 30 == 29) {
			drain();
			assert_eventually(ask("SELECT count(*) FROM stacks") == 100); /* it was removed */
		}
	}
	drain();
	assert_complete();
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE json_array_length(trace) = 1"), 1);
	stop_store();
}

/* The names alone exceed the bound, but samples are stored all the same. */
static void names_go_last(void **state)
{
	uint64_t lost = store_counter(STORE_LOST);

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 1000, 10, (struct query_key){ 0 });
	stop_store();
	ask_file(trace_path, "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
	                     " INSERT INTO names SELECT i, printf('%0100d', i) FROM n");
	ask_file(trace_path, "INSERT INTO frames SELECT id, 0, 0, id, id, id, 1 FROM names");
	assert_true(bytes_now() > 4 * MB);
	start_store(trace_path, 2 * MB);
	for (uint64_t i = 1; i < 20; i++) {
		put_samples(T0 + i * 10000000, 1000, 10, (struct query_key){ 0 });
		drain();
	}
	assert_int_equal(store_counter(STORE_LOST) - lost, 0);
	assert_false(has_error());
	assert_int_equal(ask("SELECT count(*) FROM frames"), 0);
	assert_true(ask("SELECT count(*) FROM trace_log") >= 1000);
	stop_store();
	assert_true(bytes_now() < 2 * MB + MB / 5);
	assert_intact(trace_path);
	/* If there is room, names stay while samples come and go. */
	ask_file(trace_path,
	         "INSERT INTO names VALUES (1, 'x'); INSERT INTO frames VALUES (1, 0, 0, 1, 1, 0, 0)");
	fill(2 * MB, 80, 100);
	assert_int_equal(ask("SELECT count(*) FROM frames"), 1);
	stop_store();
}

static void queries_without_samples_are_bounded(void **state)
{
	uint64_t lost = store_counter(STORE_LOST);
	char text[300];
	int64_t most = 0;

	(void)state;
	start_store(trace_path, MB);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (uint64_t i = 0; i < 10000 * times; i++) {
		struct a_query query = { .record = { .query = { 0x0190000000007000ull + i, 1 },
			                             .start_realtime_ns = T0 + i * 1000 },
			                 .query = text };

		text[snprintf(text, sizeof(text), "SELECT %010llu", (unsigned long long)i)] = ' ';
		put_query(&query);
		if (i % 100 == 0 && bytes_now() > most)
			most = bytes_now();
	}
	drain();
	if (most > MB + MB / 10)
		fail_msg("%lld bytes", (long long)most);
	assert_int_equal(store_counter(STORE_LOST) - lost, 0);
	snprintf(text, sizeof(text), "SELECT %010llu", (unsigned long long)(10000 * times - 1));
	assert_string_equal(ask_text("SELECT substr(query, 1, 17) FROM query_log ORDER BY "
	                             "query_start_time_microseconds DESC"),
	                    text);
	assert_true(ask("SELECT count(*) FROM query_log") > 100);
	stop_store();
	assert_intact(trace_path);
}

/* The bound is lowered in a running store, or at a restart. The file shrinks in steps, and nothing is
 * lost. */
static void bound_is_lowered(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		const uint64_t lost = store_counter(STORE_LOST), at_ns = T0 + (uint64_t)again * 1000000000000;
		const uint64_t later_ns = at_ns + 1000000000;
		char newer[100];
		uint64_t rows = 0;

		start_store(trace_path, 0);
		put_samples(at_ns, 400000, 100, (struct query_key){ 1, 1 });
		drain();
		assert_true(bytes_now() > 10 * MB);
		if (again) {
			stop_store();
			start_store(trace_path, 2 * MB);
		} else {
			configure_store(trace_path, 2 * MB);
		}
		assert_eventually((put_samples(later_ns + 1000000 * rows++, 1, 1, (struct query_key){ 1, 1 }),
		                   drain(), bytes_now() <= 2 * MB));
		assert_int_equal(store_counter(STORE_LOST) - lost, 0);
		assert_false(has_error());
		snprintf(newer, sizeof(newer), "SELECT count(*) FROM trace_log WHERE timestamp_ns >= %llu",
		         (unsigned long long)later_ns);
		assert_int_equal(ask(newer), rows);
		assert_complete();
		stop_store();
		assert_intact(trace_path);
	}
}

/* A reader of an old snapshot blocks checkpoints. The bound holds, samples are lost, and storing resumes when
 * the reader has ended. */
static void reader_stays_open(void **state)
{
	uint64_t lost = store_counter(STORE_LOST), stored;
	struct store_cursor *cursor;
	char *error;

	(void)state;
	start_store(trace_path, 2 * MB);
	put_samples(T0, 1000, 10, (struct query_key){ 1, 1 });
	drain();
	cursor = store_select("SELECT timestamp_ns FROM trace_log", NULL, &error);
	assert_int_equal(store_step(cursor), 1);
	for (uint64_t i = 1; i < 150 * times; i++) {
		put_samples(T0 + i * 1000000, 1000, 10, (struct query_key){ 1, 1 });
		assert_true(bytes_now() <= 2 * MB + 2 * MB / 10);
	}
	drain();
	assert_true(store_counter(STORE_LOST) > lost);
	assert_true(has_error());
	for (int i = 1; i < 1000; i++)
		assert_int_equal(store_step(cursor), 1);
	assert_int_equal(store_step(cursor), 0);
	store_close(cursor);
	stored = store_counter(STORE_SAMPLES);
	assert_eventually((put_samples(T0 + times * 1000000000, 1, 1, (struct query_key){ 1, 1 }), drain(),
	                   store_counter(STORE_SAMPLES) > stored && !has_error()));
	assert_complete();
	stop_store();
	assert_intact(trace_path);
}

/* A changed bound does not remove rows that fit. */
static void nothing_goes_below_the_bound(void **state)
{
	uint64_t trimmed = store_counter(STORE_TRIMMED);

	(void)state;
	start_store(trace_path, 64 * MB);
	put_samples(T0, 1000, 100, (struct query_key){ 1, 1 });
	drain();
	configure_store(trace_path, 128 * MB);
	/* The flusher applies the bound when no thread waits for it. */
	for (int i = 1; i <= 3; i++) {
		uint64_t stored = store_counter(STORE_SAMPLES);

		put_samples(T0 + (uint64_t)i * 10000000, 10, 10, (struct query_key){ 1, 1 });
		assert_eventually(store_counter(STORE_SAMPLES) > stored);
	}
	drain();
	assert_int_equal(store_counter(STORE_TRIMMED), trimmed);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 1030);
	stop_store();
}

/* False while the flusher changes one of them. */
static bool both_are_counted(const char *path, const char *log_path)
{
	struct stat file, log;

	return !stat(path, &file) && !stat(log_path, &log) && log.st_size > 0 &&
	       store_counter(STORE_BYTES) == (uint64_t)(file.st_size + log.st_size);
}

/* SQLite keeps the log next to the file that the link names. */
static void the_log_of_a_link_counts(void **state)
{
	(void)state;
	assert_int_equal(mkdir(in_folder("there"), 0700), 0);
	assert_int_equal(close(creat(in_folder("there/y.db"), 0600)), 0);
	assert_int_equal(symlink(in_folder("there/y.db"), trace_path), 0);
	start_store(trace_path, 8 * MB);
	put_samples(T0, 1000, 100, (struct query_key){ 1, 1 });
	drain();
	assert_eventually(both_are_counted(in_folder("there/y.db"), in_folder("there/y.db-wal")));
	stop_store();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		TEST(oldest_go_first),
		TEST(stacks_go_when_unused),
		TEST(stacks_come_again),
		TEST(names_go_last),
		TEST(queries_without_samples_are_bounded),
		TEST(bound_is_lowered),
		TEST(reader_stays_open),
		TEST(nothing_goes_below_the_bound),
		TEST(the_log_of_a_link_counts),
	};

	if (count > 1)
		times = strtoull(arguments[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
