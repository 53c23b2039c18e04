/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes write to one file, fork, and are killed; the file stays whole.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define KEY(n) ((struct query_key){ 0x0190000000007000ull + (uint64_t)(n), 0x8000000000000000ull })

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			char *error_ = store_error();                                                        \
			fprintf(stderr, "%s:%d: not so: %s; %s\n", __FILE__, __LINE__, #condition,           \
			        error_ ? error_ : "");                                                       \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)

static void assert_child_well(pid_t child)
{
	int status;

	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("child: %x", status);
}

#define WRITERS 4
#define EACH 20000

/* Half of the ring holds all records of a writer. A fuller ring drops records while another process keeps the
 * file locked for a second. */
#define ROOMY_RING (32 << 20)

static void write_much(int number)
{
	uint64_t before = store_counter(STORE_SAMPLES);

	start_store_with_ring(trace_path, 0, ROOMY_RING);
	for (int i = 0; i < EACH / 1000; i++) {
		struct a_query query = { .record = { .query = KEY(number * 1000 + i),
			                             .start_realtime_ns = T0 },
			                 .query = "SELECT 1" };

		/* All writers have the same times and the same stacks. */
		put_samples(T0 + (uint64_t)i * 1000000, 1000, 50, query.record.query);
		put_query(&query);
	}
	CHECK(store_drain(PATIENCE_MS));
	CHECK(store_counter(STORE_SAMPLES) - before == EACH);
	CHECK(store_counter(STORE_LOST) == 0);
	stop_store();
}

static void writers_share_a_file(void **state)
{
	pid_t children[WRITERS];

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		children[i] = fork();
		if (!children[i]) {
			write_much(i + 1);
			_exit(0);
		}
	}
	for (int i = 0; i < WRITERS; i++)
		assert_child_well(children[i]);
	assert_intact(trace_path);
	assert_int_equal(atoi(ask_file(trace_path, "SELECT count(*) FROM trace_log")), WRITERS * EACH);
	assert_string_equal(ask_file(trace_path, "SELECT count(*) FROM stacks"), "50");
	assert_string_equal(ask_file(trace_path, "SELECT count(*) FROM statements"), "1");
	assert_int_equal(atoi(ask_file(trace_path, "SELECT count(*) FROM processes")), WRITERS);
	assert_int_equal(atoi(ask_file(trace_path, "SELECT count(*) FROM query_log")), WRITERS * EACH / 1000);
	/* Each sample belongs to its own query, and each query has all its samples. */
	assert_string_equal(ask_file(trace_path, "SELECT min(n) || '|' || max(n) || '|' || count(*) FROM"
	                                         " (SELECT count(*) AS n FROM trace_log GROUP BY query_id)"),
	                    "1000|1000|80");
}

static int64_t newest_sample(void)
{
	return atoll(ask_file(trace_path, "SELECT coalesce(max(timestamp_ns), 0) FROM samples"));
}

#define KILLED 12

/* SIGKILL at any moment, again and again, on one file. */
static void killed_at_any_moment(void **state)
{
	int64_t last = 0;
	pid_t first = fork();

	(void)state;
	if (!first) {
		start_store(trace_path, 2 << 20);
		put_samples(T0 - 1000000, 10, 5, KEY(99));
		CHECK(store_drain(PATIENCE_MS)); /* stop_store() does not wait for a slow disk */
		stop_store();
		_exit(0);
	}
	assert_child_well(first);
	for (int round = 0; round < KILLED; round++) {
		int64_t now;
		int status;
		pid_t child = fork();

		if (!child) {
			/* With a bound, the signal also interrupts the removal of rows. */
			start_store(trace_path, 2 << 20);
			for (uint64_t i = 0;; i++)
				put_samples(T0 + (uint64_t)round * 1000000000 + i * 1000000, 1000, 200,
				            KEY(round));
		}
		for (int i = 0; i < 1 + round * 3; i++)
			nap();
		if (round == KILLED - 1) /* this round waits until something is stored */
			assert_eventually(newest_sample() > last);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
		assert_intact(trace_path);
		now = newest_sample();
		assert_true(now >= last);
		last = now;
		assert_string_equal(
			ask_file(trace_path,
		                 "SELECT count(*) FROM trace_log WHERE trace IS NULL OR query_id IS NULL"
		                 " OR thread_id IS NULL OR process_id IS NULL"),
			"0");
	}
}

/* The file's first moments are the most delicate. */
static void killed_while_it_is_made(void **state)
{
	(void)state;
	for (int round = 0; round < 30; round++) {
		int status;
		pid_t child = fork();

		if (!child) {
			char *error;

			alarm(300);
			start_store(trace_path, 0);
			store_open(&error);
			_exit(0);
		}
		usleep((useconds_t)round * 300);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		child = fork();
		if (!child) {
			start_store(trace_path, 0);
			put_samples(T0, 10, 2, KEY(1));
			CHECK(store_drain(PATIENCE_MS));
			CHECK(store_counter(STORE_SAMPLES) == 10);
			stop_store();
			_exit(0);
		}
		assert_child_well(child);
		assert_intact(trace_path);
		unlink(trace_path);
	}
}

/* ThreadSanitizer mistakes a child's thread for the parent's thread with the same handle. */
#ifdef __SANITIZE_THREAD__
#define SKIP_WITH_TSAN() skip()
#else
#define SKIP_WITH_TSAN() (void)0
#endif

#define WITHOUT_FILE 9 /* the child's exit status */

/* The child has no file if the parent's flusher did not close its own within the second that fork() waits, as
 * on a disk with slow syncs. */
static bool has_no_file(void)
{
	char *error = store_error();
	bool has_none = error && strstr(error, "while its parent's trace file was in use");

	free(error);
	return has_none;
}

/* Returns false if the child had no file. */
static bool forked(bool temporary)
{
	uint64_t lost = store_counter(STORE_LOST);
	char *own, *parents;
	int status;
	int64_t pid;
	pid_t child;

	start_store(temporary ? NULL : trace_path, 0);
	put_samples(T0, 10, 2, KEY(1));
	drain();
	parents = store_path();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 10);
	put_samples(T0 + 1000000, 5, 2, KEY(1)); /* in the ring at the fork */

	store_before_fork();
	child = fork();
	if (child) {
		store_after_fork_parent();
	} else {
		store_after_fork_child();
		CHECK(store_counter(STORE_SAMPLES) == 0);
		store_start();
		put_samples(T0 + 2000000, 20, 2, KEY(2));
		CHECK(store_drain(PATIENCE_MS));
		if (has_no_file())
			_exit(WITHOUT_FILE);
		CHECK(store_counter(STORE_SAMPLES) == 20);
		own = store_path();
		CHECK(own && temporary == !!strcmp(own, parents));
		CHECK(ask("SELECT count(*) FROM trace_log WHERE query_id LIKE '01900000-0000-7002%'") == 20);
		CHECK(ask("SELECT count(DISTINCT process_id) FROM trace_log WHERE query_id LIKE "
		          "'01900000-0000-7002%'") == 1);
		CHECK(ask("SELECT max(process_id) FROM trace_log WHERE query_id LIKE "
		          "'01900000-0000-7002%'") == getpid());
		store_shutdown();
		CHECK(temporary == (access(own, F_OK) != 0));
		CHECK(access(parents, F_OK) == 0);
		_exit(0);
	}
	put_samples(T0 + 3000000, 7, 2, KEY(1));
	waitpid(child, &status, 0);
	drain();
	if (WIFEXITED(status) && WEXITSTATUS(status) == WITHOUT_FILE) {
		free(parents);
		stop_store();
		return false;
	}
	assert_int_equal(status, 0);
	pid = getpid();
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id LIKE '01900000-0000-7001%'"), 22);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), temporary ? 22 : 42);
	assert_int_equal(
		ask("SELECT min(process_id) FROM trace_log WHERE query_id LIKE '01900000-0000-7001%'"), pid);
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 2);
	assert_int_equal(store_counter(STORE_LOST) - lost, 0);
	free(parents);
	stop_store();
	if (!temporary)
		assert_intact(trace_path);
	return true;
}

static void fork_with_a_file(void **state)
{
	int tries = 1;

	(void)state;
	SKIP_WITH_TSAN();
	for (; !forked(false); tries++) {
		assert_true(tries < 20);
		assert_int_equal(unlink(trace_path), 0);
	}
}

static void fork_with_a_temporary_file(void **state)
{
	(void)state;
	SKIP_WITH_TSAN();
	for (int tries = 1; !forked(true); tries++)
		assert_true(tries < 20);
}

static void fork_while_a_cursor_is_open(void **state)
{
	struct store_cursor *cursor;
	char *error;
	pid_t child;

	(void)state;
	SKIP_WITH_TSAN();
	start_store(trace_path, 0);
	put_samples(T0, 1000, 2, KEY(1));
	drain();
	cursor = store_select("SELECT timestamp_ns FROM trace_log", NULL, &error);
	assert_non_null(cursor);
	assert_int_equal(store_step(cursor), 1);
	store_before_fork();
	child = fork();
	if (child) {
		store_after_fork_parent();
	} else {
		store_after_fork_child();
		/* The parent's cursor cannot be used, but can be closed. */
		CHECK(store_step(cursor) == -1);
		store_close(cursor);
		store_start();
		put_samples(T0, 10, 2, KEY(2));
		store_drain(PATIENCE_MS);
		CHECK(store_counter(STORE_SAMPLES) == 0);
		CHECK(store_counter(STORE_LOST) == 10);
		CHECK(has_error());
		CHECK(!store_select("SELECT 1", NULL, &error) && error);
		store_shutdown();
		_exit(0);
	}
	assert_child_well(child);
	for (int i = 1; i < 1000; i++)
		assert_int_equal(store_step(cursor), 1);
	assert_int_equal(store_step(cursor), 0);
	store_close(cursor);
	put_samples(T0 + 5000000, 10, 2, KEY(1));
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 1010);
	stop_store();
	assert_intact(trace_path);
}

static void many_forks(void **state)
{
	(void)state;
	start_store(trace_path, 0);
	for (int i = 0; i < 50; i++) {
		pid_t child;

		put_samples(T0 + (uint64_t)i * 1000000, 100, 20, KEY(1));
		store_before_fork();
		child = fork();
		if (!child) {
			store_after_fork_child();
			_exit(0);
		}
		store_after_fork_parent();
		assert_child_well(child);
	}
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 5000);
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 20);
	stop_store();
	assert_intact(trace_path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Tests whose children use SQLite come first, while this process has not used it. */
		TEST(writers_share_a_file),
		TEST(killed_at_any_moment),
		TEST(killed_while_it_is_made),
		TEST(fork_with_a_file),
		TEST(fork_with_a_temporary_file),
		TEST(fork_while_a_cursor_is_open),
		TEST(many_forks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
