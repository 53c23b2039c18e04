/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WAL index (-shm) is shared with other processes, which may truncate or corrupt it at any moment. The
 * host must neither get a signal nor lose committed rows. Other copies of SQLite, which map the index, write
 * and read at the same time.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define KEY ((struct query_key){ 7, 7 })

static char *index_path(void)
{
	return in_folder("x.db-shm");
}

static uint64_t stored_before, lost_before;

static int note_counters(void **state)
{
	stored_before = store_counter(STORE_SAMPLES);
	lost_before = store_counter(STORE_LOST);
	return set_up(state);
}

static uint64_t stored(void)
{
	return store_counter(STORE_SAMPLES) - stored_before;
}

static uint64_t lost(void)
{
	return store_counter(STORE_LOST) - lost_before;
}

static void fill_with(int byte)
{
	char bytes[4096];
	int fd = open(index_path(), O_WRONLY);

	memset(bytes, byte, sizeof(bytes));
	assert_true(fd >= 0);
	for (int i = 0; i < 16; i++)
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
}

static void empty(void)
{
	assert_int_equal(truncate(index_path(), 0), 0);
}

/* Replaces the content with a hole. */
static void hollow(void)
{
	empty();
	assert_int_equal(truncate(index_path(), 65536), 0);
}

static void cut(void)
{
	assert_int_equal(truncate(index_path(), 200), 0);
}

static void overwrite(void)
{
	fill_with(0x5a);
}

static void nothing_is_mapped(void **state)
{
	FILE *maps;
	char line[600];

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 10, 5, KEY);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM samples"), 10);
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, folder))
			fail_msg("mapped: %s", line);
	fclose(maps);
}

/* The index is spoiled between two transactions, while a cursor is open. */
static void spoiled_index_is_built_again(void **state)
{
	void (*const spoilers[])(void) = { empty, hollow, cut, overwrite };
	struct store_cursor *cursor;
	uint64_t put = 0;
	char *error;

	(void)state;
	start_store(trace_path, 0);
	for (int round = 0; round < 40; round++) {
		int rows = 0;

		put_samples(T0 + put * 1000, 1000, 50, KEY);
		put += 1000;
		drain();
		cursor = store_select("SELECT timestamp_ns FROM samples", NULL, &error);
		assert_non_null(cursor);
		assert_int_equal(store_step(cursor), 1);
		spoilers[round % 4]();
		while (store_step(cursor) == 1)
			rows++;
		assert_int_equal(rows, put - 1);
		store_close(cursor);
		put_samples(T0 + put * 1000, 1000, 50, KEY);
		put += 1000;
		drain();
		assert_int_equal(ask("SELECT count(*) FROM samples"), put);
		assert_int_equal(atoll(ask_file(trace_path, "SELECT count(*) FROM samples")), put);
	}
	assert_int_equal(lost(), 0);
	stop_store();
	assert_intact(trace_path);
	assert_int_equal(atoll(ask_file(trace_path, "SELECT count(*) FROM samples")), put);
}

static int ended; /* relaxed atomic */

static void *keep_emptying(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED); i++) {
		if (truncate(index_path(), i % 3 ? 0 : 65536))
			usleep(100);
		usleep(i % 7 * 50);
	}
	return NULL;
}

/* The index is emptied at any moment, also during a transaction. */
static void index_is_emptied_all_the_time(void **state)
{
	pthread_t thread;
	uint64_t put = 0;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 1000, 50, KEY);
	put = 1000;
	drain();
	assert_int_equal(pthread_create(&thread, NULL, keep_emptying, NULL), 0);
	for (int round = 0; round < 60; round++) {
		char *error;
		struct store_cursor *cursor;

		put_samples(T0 + put * 1000, 1000, 50, KEY);
		put += 1000;
		drain();
		/* It may fail with an error. */
		cursor = store_select("SELECT count(*) FROM samples", NULL, &error);
		if (!cursor) {
			free(error);
		} else {
			if (store_step(cursor) != 1)
				assert_true(*store_cursor_error(cursor));
			store_close(cursor);
		}
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	print_message("%llu stored, %llu lost, %llu errors\n", (unsigned long long)stored(),
	              (unsigned long long)lost(), (unsigned long long)store_counter(STORE_ERRORS));
	assert_int_equal(stored() + lost(), put);
	/* Afterwards everything works again. */
	put_samples(T0 + put * 1000, 1000, 50, KEY);
	put += 1000;
	assert_true(store_drain(PATIENCE_MS));
	assert_int_equal(ask("SELECT count(*) FROM samples"), stored());
	stop_store();
	assert_intact(trace_path);
	assert_int_equal(atoll(ask_file(trace_path, "SELECT count(*) FROM samples")), stored());
}

#define OTHERS 2
#define TRANSACTIONS 300

/* Starts the installed SQLite, which maps the index. */
static FILE *start_other(void)
{
	char command[200];
	FILE *other;

	snprintf(command, sizeof(command), "sqlite3 '%s' >> '%s/others' 2>&1", trace_path, folder);
	other = popen(command, "w");
	assert_non_null(other);
	/* On a slow disk, syncs would keep the file locked for longer than the store waits. */
	fprintf(other, ".timeout 20000\nPRAGMA synchronous = OFF;\n");
	for (int i = 0; i < TRANSACTIONS; i++)
		fprintf(other,
		        "INSERT INTO others VALUES (%d, zeroblob(3000));\n"
		        "SELECT 'behind' WHERE (SELECT count(*) FROM others) <= %d;\n",
		        i, i);
	return other;
}

static const char *read_all(const char *path)
{
	static char text[1000];
	FILE *file = fopen(path, "r");

	text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	return text;
}

/* The other processes write missing rows and failures to the file "others". */
static void others_write_beside_us(void **state)
{
	FILE *others[OTHERS];
	uint64_t put = 0;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 10, 5, KEY);
	put = 10;
	drain();
	assert_string_equal(ask_file(trace_path, "CREATE TABLE others (a, b)"), "");
	for (int i = 0; i < OTHERS; i++)
		others[i] = start_other();
	for (int round = 0; round < 100; round++) {
		put_samples(T0 + put * 1000, 200, 50, KEY);
		put += 200;
		drain();
		assert_int_equal(ask("SELECT count(*) FROM samples"), put);
		ask("SELECT count(*) FROM others");
	}
	for (int i = 0; i < OTHERS; i++)
		assert_int_equal(pclose(others[i]), 0);
	assert_string_equal(read_all(in_folder("others")), "");
	assert_int_equal(ask("SELECT count(*) FROM others"), OTHERS * TRANSACTIONS);
	assert_int_equal(ask("SELECT count(*) FROM samples"), put);
	assert_int_equal(lost(), 0);
	stop_store();
	assert_intact(trace_path);
	assert_int_equal(atoll(ask_file(trace_path, "SELECT count(*) FROM samples")), put);
	assert_int_equal(atoll(ask_file(trace_path, "SELECT count(*) FROM others")), OTHERS * TRANSACTIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, note_counters, tear_down)
		TEST(nothing_is_mapped),
		TEST(spoiled_index_is_built_again),
		TEST(index_is_emptied_all_the_time),
		TEST(others_write_beside_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
