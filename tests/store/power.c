/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power is lost at any moment of the file's life. The remaining file opens, is intact, and has everything up
 * to the last synced flush. Every flush is synced within a flush interval, also if no record follows.
 *
 * The argument or STORE_TEST_MOMENTS is the number of moments to try (default 60).
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lossy_disk.h"
#include "support.h"
#include "../lib/seed.h"

#define MB (1 << 20)
#define KEY ((struct query_key){ 7, 7 })

static size_t wanted_moments = 60;
static uint64_t seed;
static uint64_t stored_before;

/* Called in the flusher; returns the number of committed samples. */
static uint64_t stored(void)
{
	return store_counter(STORE_SAMPLES) - stored_before;
}

/* Returns the number of the newest sample in the file, counted from 1; 0 if there is none. The test fails if
 * the file cannot be opened or is damaged. */
static uint64_t read_newest(const char *path, const char *what)
{
	sqlite3_stmt *statement = NULL;
	uint64_t newest = 0;
	sqlite3 *db;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix"))
		fail_msg("%s: %s", what, sqlite3_errmsg(db));
	sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL); /* the file is not kept */
	if (sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL) ||
	    sqlite3_step(statement) != SQLITE_ROW ||
	    strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
		fail_msg("%s: %s, %s", what, sqlite3_errmsg(db),
		         statement ? (const char *)sqlite3_column_text(statement, 0) : "");
	sqlite3_finalize(statement);
	/* Without the table, the file was not made yet. */
	if (!sqlite3_prepare_v2(db, "SELECT max(timestamp_ns) FROM trace_log", -1, &statement, NULL) &&
	    sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int64(statement, 0))
		newest = (uint64_t)(sqlite3_column_int64(statement, 0) - (int64_t)T0) / 1000 + 1;
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return newest;
}

/* The store opens the file and stores one more sample. */
static void assert_goes_on(const char *path, const char *what)
{
	uint64_t before = store_counter(STORE_SAMPLES);

	start_store(path, 2 * MB);
	put_samples(T0 + 3600000000000ull, 1, 1, KEY);
	drain();
	if (store_counter(STORE_SAMPLES) != before + 1)
		fail_msg("%s: %s", what, store_error());
	stop_store();
}

static void lose_power_at(size_t moment, enum disk_loss loss)
{
	char *path = in_folder("found.db"), what[100];
	uint64_t noted = disk_noted(moment), newest;

	snprintf(what, sizeof(what), "moment %zu of %zu, loss %d, seed %llu", moment, disk_moments(),
	         (int)loss, (unsigned long long)seed);
	disk_make(path, moment, loss, seed + moment);
	newest = read_newest(path, what);
	if (newest < noted)
		fail_msg("%s: %llu samples of %llu", what, (unsigned long long)newest,
		         (unsigned long long)noted);
	if (moment % 16 == 0) {
		assert_goes_on(path, what);
		read_newest(path, what);
	}
}

static void lose_power_everywhere(void)
{
	size_t moments = disk_moments(), step = moments / wanted_moments + 1;

	disk_record(NULL, NULL);
	/* Tries each of the first 60 moments, in which the file is made. */
	for (size_t moment = 0; moment < moments; moment += moment < 60 ? 1 : step) {
		for (enum disk_loss loss = LOSE_NOTHING; loss <= LOSE_RANDOMLY; loss++)
			lose_power_at(moment, loss);
	}
	printf("%zu writes, every %zu. of them\n", moments, step);
}

static int note_counters(void **state)
{
	set_up(state);
	stored_before = store_counter(STORE_SAMPLES);
	return 0;
}

static bool all_synced(uint64_t count)
{
	return disk_noted(disk_moments()) == count;
}

static void fill(size_t flushes, size_t samples, size_t stacks)
{
	for (size_t i = 0; i < flushes; i++) {
		put_samples(T0 + i * samples * 1000, samples, stacks, KEY);
		drain();
		/* Stored records are synced even if no record follows. */
		if (i % 16 == 0)
			assert_eventually(all_synced((i + 1) * samples));
	}
}

static void file_grows(void **state)
{
	char *path = in_folder("x.db");

	(void)state;
	disk_record(path, stored);
	start_store(path, 0);
	fill(120, 50, 40);
	stop_store();
	lose_power_everywhere();
}

/* Because of the bound, the log restarts, samples are removed and pages are reused. */
static void file_is_trimmed(void **state)
{
	char *path = in_folder("x.db");
	uint64_t trimmed = store_counter(STORE_TRIMMED);

	(void)state;
	disk_record(path, stored);
	start_store(path, MB);
	fill(80, 800, 200);
	stop_store();
	assert_true(store_counter(STORE_TRIMMED) > trimmed);
	lose_power_everywhere();
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, note_counters, tear_down)
		TEST(file_grows),
		TEST(file_is_trimmed),
	};

	const char *wanted = count > 1 ? arguments[1] : getenv("STORE_TEST_MOMENTS");

	if (wanted)
		wanted_moments = strtoul(wanted, NULL, 10);
	seed = test_seed(1);
	disk_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
