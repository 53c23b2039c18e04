/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors return the values in the file, several cursors work at the same time, and a cursor that the store
 * does not wait for ends properly.
 */
#include <dirent.h>
#include <stdlib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "support.h"

#define KEY ((struct query_key){ 7, 7 })

static int start_filled(void **state)
{
	int failed = set_up(state);

	start_store(trace_path, 0);
	put_samples(T0, 3000, 5, KEY);
	drain();
	return failed;
}

static struct store_cursor *select_all(const char *sql)
{
	char *error;
	struct store_cursor *cursor = store_select(sql, NULL, &error);

	if (!cursor)
		fail_msg("%s: %s", sql, error);
	return cursor;
}

static void values_are_kept(void **state)
{
	struct store_cursor *cursor =
		select_all("SELECT -5, 2.5, 'a' || char(0) || 'b', x'0001', NULL, ?1, zeroblob(100000)");
	const char *bytes;
	size_t size;

	(void)state;
	store_bind_text(cursor, 1, "bound", 5);
	assert_int_equal(store_step(cursor), 1);
	assert_int_equal(store_column_type(cursor, 0), STORE_INT64);
	assert_int_equal(store_column_int64(cursor, 0), -5);
	assert_string_equal(store_column_bytes(cursor, 0, &size), "-5");
	assert_int_equal(store_column_type(cursor, 1), STORE_DOUBLE);
	assert_true(store_column_double(cursor, 1) == 2.5);
	assert_string_equal(store_column_bytes(cursor, 1, &size), "2.5");
	assert_int_equal(store_column_type(cursor, 2), STORE_TEXT);
	bytes = store_column_bytes(cursor, 2, &size);
	assert_int_equal(size, 3);
	assert_memory_equal(bytes, "a\0b", 4);
	assert_int_equal(store_column_type(cursor, 3), STORE_BLOB);
	bytes = store_column_bytes(cursor, 3, &size);
	assert_int_equal(size, 2);
	assert_memory_equal(bytes, "\0\1", 2);
	assert_int_equal(store_column_type(cursor, 4), STORE_NULL);
	assert_null(store_column_bytes(cursor, 4, &size));
	assert_string_equal(store_column_bytes(cursor, 5, &size), "bound");
	store_column_bytes(cursor, 6, &size);
	assert_int_equal(size, 100000);
	assert_int_equal(store_step(cursor), 0);
	assert_int_equal(store_step(cursor), 0);
	store_close(cursor);
}

static void cursors_interleave(void **state)
{
	const char *sql = "SELECT timestamp_ns FROM trace_log ORDER BY timestamp_ns";
	struct store_cursor *cursors[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		cursors[i] = select_all(sql);
	for (int row = 0; row < 3000; row++) {
		for (int i = 0; i < 6; i++) {
			if (store_step(cursors[i]) != 1 ||
			    store_column_int64(cursors[i], 0) != (int64_t)T0 + row * 1000)
				fail_msg("cursor %d, row %d: %lld %s", i, row,
				         (long long)store_column_int64(cursors[i], 0),
				         store_cursor_error(cursors[i]));
		}
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(store_step(cursors[i]), 0);
		store_close(cursors[i]);
	}
}

static void errors_are_returned(void **state)
{
	struct store_cursor *cursor;
	char *error;

	(void)state;
	assert_null(store_select("SELECT no_such_column FROM trace_log", NULL, &error));
	assert_non_null(strstr(error, "no_such_column"));
	free(error);
	cursor = select_all("SELECT 1 UNION ALL SELECT json('[')");
	assert_int_equal(store_step(cursor), 1);
	assert_int_equal(store_step(cursor), -1);
	assert_non_null(strstr(store_cursor_error(cursor), "malformed JSON"));
	store_close(cursor);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3000);
}

/* After the store ends, the cursor returns its remaining rows or an error, and can be closed. */
static void store_ends_under_a_cursor(void **state)
{
	struct store_cursor *cursor = select_all("SELECT timestamp_ns FROM trace_log");
	int rows = 0, code;

	(void)state;
	assert_int_equal(store_step(cursor), 1);
	stop_store();
	assert_string_equal(ask_file(trace_path, "SELECT count(*) FROM trace_log"), "3000");
	while ((code = store_step(cursor)) == 1)
		rows++;
	assert_true(code == -1 ? rows < 3000 && *store_cursor_error(cursor) : rows == 2999);
	store_close(cursor);
	start_store(trace_path, 0);
	put_samples(T0 + 1000000000, 10, 5, KEY);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3010);
}

/* Runs for minutes before its first row. */
#define LONG_SQL                                                                                             \
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e10) SELECT count(*) "   \
	"FROM n"

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_due(void *moment)
{
	return now_ms() >= *(int64_t *)moment;
}

static void given_up_reading_ends_at_once(void **state)
{
	int64_t moment = INT64_MAX, ended;
	struct store_wait wait = { .timeout_ms = 60000, .give_up = is_due, .context = &moment };
	struct store_cursor *cursor;
	char *error;

	(void)state;
	cursor = store_select(LONG_SQL, &wait, &error);
	assert_non_null(cursor);
	moment = now_ms() + 100;
	assert_int_equal(store_step(cursor), -1);
	ended = now_ms();
	assert_non_null(strstr(store_cursor_error(cursor), "interrupted"));
	assert_true(ended >= moment && ended < moment + 10000);
	assert_int_equal(store_step(cursor), -1);
	store_close(cursor);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3000);
}

static int long_began, long_ends, long_ended; /* relaxed atomics */

static bool is_long_enough(void *unused)
{
	(void)unused;
	return __atomic_load_n(&long_ends, __ATOMIC_RELAXED);
}

/* How often the reader may get no processor for its whole limit, which is a second. */
#define STARVED_MOST 5

static void *read_long(void *unused)
{
	/* Next to 50 busy threads, a thread of the store runs about every 100 ms. */
	struct store_wait wait = { .timeout_ms = 1000, .give_up = is_long_enough };
	struct store_cursor *cursor;
	char *error;
	int code;

	(void)unused;
	for (int starved = 0;; starved++) {
		code = -2;
		/* The start alone can take longer than the limit. */
		while (!(cursor = store_select(LONG_SQL, &wait, &error)) && !is_long_enough(NULL))
			free(error);
		if (cursor) {
			__atomic_store_n(&long_began, 1, __ATOMIC_RELAXED);
			code = store_step(cursor);
			if (strstr(store_cursor_error(cursor), "limit"))
				code = -3;
		} else {
			free(error);
		}
		store_close(cursor);
		if (code != -3 || starved == STARVED_MOST)
			break;
	}
	__atomic_store_n(&long_ended, 1, __ATOMIC_RELAXED);
	return (void *)(intptr_t)code;
}

/* A reader that waits for an endless statement gives up at its limit, and the error names the limit. The
 * endless statement runs beyond its own limit because it makes progress. */
static void limit_ends_waiting_for_another(void **state)
{
	struct store_wait wait = { .timeout_ms = 1500 };
	struct store_cursor *cursor;
	pthread_t thread;
	void *code;
	char *error;
	int64_t start;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_long, NULL), 0);
	while (!__atomic_load_n(&long_began, __ATOMIC_RELAXED))
		nap();
	/* This may run before the other thread's first step, when there is nothing to wait for. */
	do {
		start = now_ms();
		cursor = store_select("SELECT count(*), 7 FROM samples", &wait, &error);
		if (cursor) {
			nap();
			store_close(cursor);
		}
	} while (cursor && !__atomic_load_n(&long_ended, __ATOMIC_RELAXED));
	assert_null(cursor);
	assert_true(now_ms() - start >= 1500);
	assert_non_null(strstr(error, "1500 ms"));
	assert_non_null(strstr(error, "limit"));
	free(error);
	__atomic_store_n(&long_ends, 1, __ATOMIC_RELAXED);
	pthread_join(thread, &code);
	assert_int_equal((intptr_t)code, -1);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3000);
}

static struct module module_at(uint64_t start)
{
	return (struct module){ .start = start,
		                .end = start + 0x10000,
		                .born = 1,
		                .died = UINT32_MAX,
		                .path = "/lib/a.so",
		                .build_id = "aaaa" };
}

#define HERE 0x7f1000000000
#define ELSEWHERE 0x7f3000000000

static int locator; /* atomic: the thread's id */

static void *locate_elsewhere(void *unused)
{
	(void)unused;
	__atomic_store_n(&locator, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	store_locate(ELSEWHERE);
	return NULL;
}

static bool locator_sleeps(void)
{
	int thread = __atomic_load_n(&locator, __ATOMIC_ACQUIRE);
	char path[64], line[256] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	file = thread ? fopen(path, "r") : NULL;
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	end = strrchr(line, ')');
	return end && end[1] == ' ' && end[2] == 'S';
}

static const struct lock_group store_locks = {
	.before_fork = store_before_fork,
	.after_fork_in_parent = store_after_fork_parent,
	.after_fork_in_child = store_after_fork_child,
};
LOCK_DEFINE_GROUP(store, LOCK_STORE, &store_locks);

/* A thread that waits for its turn to read holds nothing that other threads or fork() wait for. */
static void modules_are_found_beside_a_thread_that_waits(void **state)
{
	struct module module = module_at(HERE);
	pthread_t reading, locating;
	int64_t start;
	bool is_found;

	(void)state;
	set_modules(&module, 1);
	put_sample((struct a_sample){ .timestamp_ns = T0, .trace = (uint64_t[]){ HERE + 16 }, .depth = 1 });
	drain();
	assert_non_null(store_locate(HERE + 16));
	long_began = long_ends = long_ended = 0;
	assert_int_equal(pthread_create(&reading, NULL, read_long, NULL), 0);
	assert_eventually(__atomic_load_n(&long_began, __ATOMIC_RELAXED));
	assert_int_equal(pthread_create(&locating, NULL, locate_elsewhere, NULL), 0);
	assert_eventually(locator_sleeps());
	start = now_ms();
	is_found = store_locate(HERE + 16) != NULL;
	locks_before_fork();
	locks_after_fork_in_parent();
	start = now_ms() - start;
	__atomic_store_n(&long_ends, 1, __ATOMIC_RELAXED);
	pthread_join(locating, NULL);
	pthread_join(reading, NULL);
	assert_true(is_found);
	assert_true(start < 20000); /* the limit of a turn to read is 60 s */
	set_modules(NULL, 0);
}

static int count_threads(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += *entry->d_name != '.';
	closedir(directory);
	return count;
}

/* A host that reads rarely does not keep a thread for it. */
static void thread_ends_after_reading(void **state)
{
	int before = count_threads();

	(void)state;
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3000);
	assert_true(count_threads() <= before + 1);
	assert_eventually(count_threads() <= before); /* joined threads are listed for a moment */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_filled, tear_down)
		TEST(values_are_kept),
		TEST(cursors_interleave),
		TEST(errors_are_returned),
		TEST(store_ends_under_a_cursor),
		TEST(given_up_reading_ends_at_once),
		TEST(limit_ends_waiting_for_another),
		TEST(modules_are_found_beside_a_thread_that_waits),
		TEST(thread_ends_after_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
