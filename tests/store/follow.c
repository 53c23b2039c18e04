/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a trace file: each sample, thread and change of a query comes once, whatever its
 * timestamp and whichever process stored it; what was removed before is counted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/read/follow.h"
#include "support.h"

#define KEY(n) ((struct query_key){ 0x0190000000007000ull + (uint64_t)(n), 0x8000000000000000ull })

struct seen {
	struct follow_position at;
	int64_t samples, missed, queries, finished, threads, looks;
	int64_t newest; /* timestamp */
};

static void look(struct seen *seen, int64_t most, struct follow_news *news)
{
	char *error;

	if (!follow_look(store_file_own(), &seen->at, most, news, &error))
		fail_msg("follow_look: %s", error);
	assert_true(news->until.batch >= news->since.batch);
	assert_true(news->until.samples >= news->since.samples);
	assert_true(news->until.samples - news->since.samples <= most ||
	            news->until.batch == news->since.batch + 1);
}

static int64_t read_rows(const struct follow_news *news, enum follow_kind kind, int64_t *ones,
                         int64_t *greatest)
{
	char *error;
	struct store_cursor *cursor = follow_select(store_file_own(), news, kind, &error);
	int64_t rows = 0;
	int code;

	if (!cursor)
		fail_msg("follow_select: %s", error);
	while ((code = store_step(cursor)) == 1) {
		int64_t first = store_column_int64(cursor, 0);

		rows++;
		*ones += first == 1;
		if (first > *greatest)
			*greatest = first;
	}
	if (code)
		fail_msg("%s", store_cursor_error(cursor));
	store_close(cursor);
	return rows;
}

/* All that is new, in steps. */
static void follow(struct seen *seen, int64_t most)
{
	struct follow_news news;
	int64_t none = 0, other = 0;

	for (look(seen, most, &news); news.until.batch > news.since.batch; look(seen, most, &news)) {
		int64_t samples = read_rows(&news, FOLLOW_SAMPLES, &none, &seen->newest);

		/* Retention may come between. */
		assert_true(samples <= (int64_t)news.samples);
		seen->samples += samples;
		seen->missed += (int64_t)(news.missed + news.samples) - samples;
		seen->queries += read_rows(&news, FOLLOW_QUERIES, &seen->finished, &other);
		seen->threads += read_rows(&news, FOLLOW_THREADS, &none, &other);
		seen->at = news.until;
		seen->looks++;
	}
	seen->missed += (int64_t)news.missed;
	seen->at = news.until;
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
	assert_int_equal(seen.threads, 1);
	/* An older time, and the query ends. */
	put_samples(T0 - 1000000000, 50, 5, KEY(1));
	put_query(&query);
	drain();
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 150);
	assert_int_equal(seen.queries, 2);
	assert_int_equal(seen.finished, 1);
	assert_int_equal(seen.threads, 1);
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 150);
	assert_int_equal(seen.newest, T0 + 99 * 1000);
	assert_int_equal(seen.missed, 0);
	/* The position holds for a writer that starts again. */
	stop_store();
	start_store(trace_path, 0);
	put_samples(T0 + 5000000, 30, 5, KEY(2));
	drain();
	follow(&seen, 1000);
	assert_int_equal(seen.samples, 180);
	assert_int_equal(seen.queries, 3);
}

/* A batch of their own: the flusher reads up to the first record that is not committed. */
static void put_together(const int64_t *times, size_t count)
{
	struct thread_record *first = ring_reserve(ring, sizeof *first);

	assert_non_null(first);
	*first = (struct thread_record){ .thread_id = 4242 };
	for (size_t i = 0; i < count; i++)
		put_samples(T0 + (uint64_t)times[i] * 1000, 1, 1, KEY(1));
	ring_commit(ring, first, RECORD_THREAD);
	drain();
}

/* Two samples each, at times before, between, around and behind the earlier ones: each batch
 * has its own samples, also for a reader that comes later and alone. */
static void any_order_of_times_is_followed(void **state)
{
	static const int64_t times[][2] = { { 50, 51 }, { 20, 60 }, { 30, 55 }, { 40, 41 },
		                            { 10, 70 }, { 65, 66 }, { 80, 81 }, { 5, 90 } };
	const int64_t late = 1 + 2 + 2 + 1 + 2 + 0 + 1; /* those that later ones had preceded */
	struct seen seen = { .looks = 0 };
	struct follow_news news;

	(void)state;
	start_store(trace_path, 0);
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		put_together(times[i], 2);
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		int64_t ones = 0, newest = 0;

		look(&seen, 1, &news);
		assert_int_equal(news.samples, 2);
		assert_int_equal(news.missed, 0);
		assert_int_equal(read_rows(&news, FOLLOW_SAMPLES, &ones, &newest), 2);
		assert_int_equal(newest, T0 + times[i][1] * 1000);
		seen.at = news.until;
	}
	assert_int_equal(ask("SELECT count(*) FROM late_samples"), late);
}

/* Several processes at the same times; the follower reads while they write, in small steps. */
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
	assert_memory_equal(&again.at, &seen.at, sizeof seen.at);
	follow(&slowly, 1);
	assert_int_equal(slowly.samples, 30001);
	assert_int_equal(slowly.looks, slowly.at.batch);
	/* Younger than this process's other sample, though not than those of the others. */
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
	/* Trimming goes on between two looks. */
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
	struct follow_news news;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 10, 5, KEY(1));
	drain();
	follow(&seen, 1000);
	configure_store(in_folder("y.db"), 0);
	put_samples(T0, 20, 5, KEY(1));
	drain();
	look(&seen, 1000, &news);
	assert_true(news.is_other_file);
	assert_int_equal(news.samples, 20);
	assert_int_equal(news.missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		/* First the one whose children use SQLite though this process has not. */
		TEST(writers_are_followed_while_they_write),
		TEST(everything_comes_once),
		TEST(any_order_of_times_is_followed),
		TEST(removed_samples_are_counted),
		TEST(another_file_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
