/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a trace file with the SQL of `queryprof push`: each sample and each change of a query arrives
 * once, whatever its timestamp and whichever process stored it. Rows that were removed before they were read
 * are counted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sql_push_news.h"
#include "sql_push_samples.h"
#include "store/read/reader.h"
#include "support.h"

#define KEY(n) ((struct query_key){ 0x0190000000007000ull + (uint64_t)(n), 0x8000000000000000ull })

static const char queries_sql[] = "SELECT finished FROM queries WHERE batch > ?1 AND batch <= ?2 AND id > 0";

struct position {
	int64_t file, batch, samples;
};

struct seen {
	struct position at;
	int64_t samples, missed, queries, finished, looks;
	int64_t newest; /* timestamp */
};

static struct store_cursor *select_rows(const char *sql)
{
	char *error;
	struct store_cursor *cursor = store_select(sql, NULL, &error);

	if (!cursor)
		fail_msg("%s: %s", sql, error);
	return cursor;
}

/* Returns false if there is no row. */
static bool step(struct store_cursor *cursor)
{
	int code = store_step(cursor);

	if (code < 0)
		fail_msg("%s", store_cursor_error(cursor));
	return code == 1;
}

static int64_t count_batches(const struct position *since, const struct position *until)
{
	struct store_cursor *cursor = select_rows("SELECT count(*) FROM batches WHERE id > ?1 AND id <= ?2");
	int64_t count;

	store_bind_int64(cursor, 1, since->batch);
	store_bind_int64(cursor, 2, until->batch);
	assert_true(step(cursor));
	count = store_column_int64(cursor, 0);
	store_close(cursor);
	return count;
}

/* Returns the position up to which to read. Another file is read from its beginning. */
static struct position look(struct seen *seen, int64_t most)
{
	struct position until = { .file = ask("SELECT identity FROM state") };
	struct store_cursor *cursor = select_rows(sql_push_news);

	if (until.file != seen->at.file)
		seen->at = (struct position){ .file = until.file };
	/* :batch, :samples, :most, :spans */
	store_bind_int64(cursor, 1, seen->at.batch);
	store_bind_int64(cursor, 2, seen->at.samples);
	store_bind_int64(cursor, 3, most);
	store_bind_int64(cursor, 4, 0);
	assert_true(step(cursor));
	assert_int_equal(store_column_int64(cursor, 0), until.file);
	until.batch = store_column_int64(cursor, 1);
	until.samples = store_column_int64(cursor, 2);
	store_close(cursor);
	assert_true(until.batch >= seen->at.batch);
	assert_true(until.samples >= seen->at.samples);
	if (until.samples - seen->at.samples > most)
		assert_int_equal(count_batches(&seen->at, &until), 1);
	return until;
}

static int64_t read_samples(const struct position *since, const struct position *until, int64_t *newest)
{
	struct store_cursor *cursor = select_rows(sql_push_samples);
	int64_t rows = 0;

	/* :by_process, :since, :until */
	store_bind_int64(cursor, 1, 0);
	store_bind_int64(cursor, 2, since->batch);
	store_bind_int64(cursor, 3, until->batch);
	for (; step(cursor); rows++)
		if (store_column_int64(cursor, 0) > *newest)
			*newest = store_column_int64(cursor, 0);
	store_close(cursor);
	return rows;
}

static int64_t read_queries(const struct position *since, const struct position *until, int64_t *finished)
{
	struct store_cursor *cursor = select_rows(queries_sql);
	int64_t rows = 0;

	store_bind_int64(cursor, 1, since->batch);
	store_bind_int64(cursor, 2, until->batch);
	for (; step(cursor); rows++)
		*finished += store_column_int64(cursor, 0);
	store_close(cursor);
	return rows;
}

/* Reads all new rows, in steps. */
static void follow(struct seen *seen, int64_t most)
{
	struct position until;

	for (until = look(seen, most); until.batch > seen->at.batch; until = look(seen, most)) {
		int64_t between = until.samples - seen->at.samples;
		int64_t samples = read_samples(&seen->at, &until, &seen->newest);

		/* Retention may remove samples in between. */
		assert_true(samples <= between);
		seen->samples += samples;
		seen->missed += between - samples;
		seen->queries += read_queries(&seen->at, &until, &seen->finished);
		seen->at = until;
		seen->looks++;
	}
}

static void everything_comes_once(void **state)
{
	struct seen seen = { .looks = 0 };
	struct a_query query = { .record = { .query = KEY(1), .start_realtime_ns = T0 },
		                 .query = "SELECT 1" };

	(void)state;
	start_store(trace_path, 0);
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 0);
	put_samples(T0, 100, 5, KEY(1));
	drain();
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 100);
	assert_int_equal(seen.queries, 1);
	assert_int_equal(seen.finished, 0);
	/* The samples have older times, and the query ends. */
	put_samples(T0 - 1000000000, 50, 5, KEY(1));
	put_query(&query);
	drain();
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 150);
	assert_int_equal(seen.queries, 2);
	assert_int_equal(seen.finished, 1);
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 150);
	assert_int_equal(seen.newest, T0 + 99 * 1000);
	assert_int_equal(seen.missed, 0);
	/* The position stays valid when the writer restarts. */
	stop_store();
	start_store(trace_path, 0);
	put_samples(T0 + 5000000, 30, 5, KEY(2));
	drain();
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 180);
	assert_int_equal(seen.queries, 3);
}

/* The samples make one batch because the flusher stops at the first uncommitted record. */
static void put_together(const int64_t *times, size_t count)
{
	struct thread_record *first = ring_reserve(ring, sizeof(*first));

	assert_non_null(first);
	*first = (struct thread_record){ .thread_id = 4242 };
	for (size_t i = 0; i < count; i++)
		put_samples(T0 + (uint64_t)times[i] * 1000, 1, 1, KEY(1));
	ring_commit(ring, first, RECORD_THREAD);
	drain();
}

/* Batches of two samples, at times before, between, around and after the earlier ones. Each batch has its own
 * samples, also for a reader that starts when all are stored. */
static void any_order_of_times_is_followed(void **state)
{
	static const int64_t times[][2] = { { 50, 51 }, { 20, 60 }, { 30, 55 }, { 40, 41 },
		                            { 10, 70 }, { 65, 66 }, { 80, 81 }, { 5, 90 } };
	const int64_t late = 1 + 2 + 2 + 1 + 2 + 0 + 1; /* older than a sample of an earlier batch */
	struct seen seen = { .looks = 0 };

	(void)state;
	start_store(trace_path, 0);
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		put_together(times[i], 2);
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		struct position until = look(&seen, 1);
		int64_t newest = 0;

		assert_int_equal(until.batch, seen.at.batch + 1);
		assert_int_equal(until.samples, seen.at.samples + 2);
		assert_int_equal(read_samples(&seen.at, &until, &newest), 2);
		assert_int_equal(newest, T0 + times[i][1] * 1000);
		seen.at = until;
	}
	assert_int_equal(ask("SELECT count(*) FROM late_samples"), late);
}

/* Several processes write samples of the same times. The follower reads meanwhile, in small steps. */
static void writers_are_followed_while_they_write(void **state)
{
	struct seen seen = { .looks = 0 }, again = { .looks = 0 }, slowly = { .looks = 0 };
	pid_t children[3];
	int64_t late;

	(void)state;
	for (int i = 0; i < 3; i++) {
		children[i] = fork();
		if (!children[i]) {
			start_store(trace_path, 0);
			for (int turn = 0; turn < 20; turn++) {
				put_samples(T0 + (uint64_t)(19 - turn) * 700000, 500, 50,
				            KEY(i * 100 + turn));
				if (!store_drain(PATIENCE_MS))
					_exit(1);
			}
			stop_store();
			_exit(0);
		}
	}
	start_store(trace_path, 0);
	put_samples(T0, 1, 1, KEY(999));
	drain();
	for (int running = 3; running;) {
		int status;

		follow(&seen, 700);
		if (waitpid(-1, &status, WNOHANG) > 0) {
			assert_int_equal(status, 0);
			running--;
		}
	}
	follow(&seen, 700);
	assert_int_equal(seen.samples, 30001);
	assert_int_equal(seen.queries, 61);
	assert_int_equal(seen.missed, 0);
	follow(&again, INT64_MAX);
	assert_int_equal(again.samples, 30001);
	assert_int_equal(again.looks, 1);
	assert_memory_equal(&again.at, &seen.at, sizeof(seen.at));
	follow(&slowly, 1);
	assert_int_equal(slowly.samples, 30001);
	assert_int_equal(slowly.looks, slowly.at.batch);
	/* The sample is newer than this process's other sample, but older than samples of other processes. */
	late = ask("SELECT count(*) FROM late_samples");
	put_samples(T0 + 1, 1, 1, KEY(999));
	drain();
	assert_int_equal(ask("SELECT count(*) FROM late_samples"), late);
}

static void removed_samples_are_counted(void **state)
{
	struct seen seen = { .looks = 0 };
	int64_t put = 0;

	(void)state;
	start_store(trace_path, 1 << 20);
	put_samples(T0, 500, 5, KEY(1));
	drain();
	put_samples(T0 - 1000000, 500, 5, KEY(1));
	put = 1000;
	drain();
	follow(&seen, INT64_MAX);
	assert_int_equal(seen.samples, 1000);
	assert_int_equal(ask("SELECT count(*) FROM late_samples"), 500);
	while (!store_counter(STORE_TRIMMED) || put < 100000) {
		put_samples(T0 + (uint64_t)put * 1000, 10000, 5, KEY(1));
		put += 10000;
		drain();
	}
	/* Trimming continues between two looks. */
	for (int64_t before = -1; before != seen.samples;) {
		before = seen.samples;
		drain();
		nap();
		follow(&seen, INT64_MAX);
	}
	assert_true(seen.missed > 0);
	assert_int_equal(seen.samples + seen.missed, put);
	assert_int_equal(ask("SELECT count(*) FROM late_samples"), 0);
}

static void another_file_is_noticed(void **state)
{
	struct seen seen = { .looks = 0 };
	int64_t first;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 10, 5, KEY(1));
	drain();
	follow(&seen, 1000);
	first = seen.at.file;
	configure_store(in_folder("y.db"), 0);
	put_samples(T0, 20, 5, KEY(1));
	drain();
	follow(&seen, 1000);
	assert_true(seen.at.file != first);
	assert_int_equal(seen.samples, 10 + 20);
	assert_int_equal(seen.at.samples, 20);
	assert_int_equal(seen.missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		/* The test whose children use SQLite comes first, while this process has not used it. */
		TEST(writers_are_followed_while_they_write),
		TEST(everything_comes_once),
		TEST(any_order_of_times_is_followed),
		TEST(removed_samples_are_counted),
		TEST(another_file_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
