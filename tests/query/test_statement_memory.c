/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters in memory that another process shares and reads, while this one runs and after it has ended. Each
 * run is read once, even if counters are folded in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/statement_memory.h"
#include "query/statement_stats.h"

#define STATEMENTS 60

struct ring *state_ring; /* defined in collect/state.c, which is not linked */

static void *memory;
static size_t size;

struct sums {
	uint64_t calls;
	int statements, others;
};

static int add(void *context, const struct statement_stats *stats)
{
	struct sums *sums = context;

	sums->calls += stats->counts->sums[STATEMENT_CALLS];
	sums->statements++;
	sums->others += !strcmp(stats->text, "(other)");
	return 0;
}

static struct sums flush(bool is_stored)
{
	struct sums sums = { 0 };

	assert_int_equal(statement_stats_next(add, &sums), 0);
	statement_stats_commit(is_stored);
	return sums;
}

/* The state of the reading process. */
static struct statement_reading reading;

static struct sums read_all(bool is_stored)
{
	struct sums sums = { 0 };

	assert_int_equal(statement_memory_read(memory, size, &reading, add, &sums), 0);
	statement_reading_commit(&reading, is_stored);
	return sums;
}

static void count(const char *text)
{
	const struct statement_name name = { .text = text, .database = "a.db" };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1 }, .seen_ns = 1 };

	statement_stats_add(statement_stats_find(&name), 1, &run);
}

/* As in a forked child, which has other memory at the same address. */
static int begin(void **state)
{
	(void)state;
	statement_memory_attach(memset(memory, 0, size), size);
	statement_stats_reset_in_child();
	statement_reading_reset(&reading);
	statement_stats_set_max(STATEMENTS_MAX_DEFAULT);
	return 0;
}

static void what_was_not_stored(void **state)
{
	(void)state;
	assert_int_equal(read_all(true).statements, 0);
	count("SELECT a");
	assert_int_equal(read_all(false).calls, 1);
	count("SELECT a");
	count("SELECT b");
	assert_int_equal(read_all(false).calls, 3);
	assert_int_equal(read_all(true).calls, 3);
	assert_int_equal(read_all(true).statements, 0);
	count("SELECT b");
	assert_int_equal(read_all(true).calls, 1);
}

static void what_the_flusher_has_not_stored(void **state)
{
	(void)state;
	count("SELECT a");
	assert_int_equal(flush(true).calls, 1);
	count("SELECT a");
	assert_int_equal(flush(false).calls, 1);
	count("SELECT a");
	assert_int_equal(flush(true).calls, 2);
	assert_int_equal(flush(true).statements, 0);
}

/* The sum of all reads equals the number of counted runs. */
static void what_was_folded(void **state)
{
	uint64_t folds = statement_memory_folds(memory);
	struct sums both[2] = { { 0 }, { 0 } };
	char text[32];

	(void)state;
	statement_stats_set_max(STATEMENTS);
	for (int i = 0; i < 4 * STATEMENTS; i++) {
		snprintf(text, sizeof(text), "SELECT a_%d", i);
		count(text);
		if (i % 7 == 0)
			both[0].calls += read_all(i % 3 != 0).calls * (i % 3 != 0);
		if (i % 16 == 0)
			both[1].calls += flush(i % 3 != 0).calls * (i % 3 != 0);
	}
	assert_true(statement_stats_counter(STATEMENTS_FOLDED) > 0);
	assert_true(statement_memory_folds(memory) > folds);
	assert_int_equal(statement_memory_folds(memory) % 2, 0);
	both[0].calls += read_all(true).calls;
	both[1].calls += flush(true).calls;
	assert_int_equal(both[0].calls, 4 * STATEMENTS);
	assert_int_equal(both[1].calls, 4 * STATEMENTS);
	count("SELECT a_new");
	count("SELECT a_newer");
	assert_int_equal(read_all(true).calls, 2);
}

/* Statements without room in the shared memory are in private memory. If only their texts are, the reader
 * does not know whose the counts are. */
static void what_has_no_room(void **state)
{
	static char text[3 * STATEMENT_TEXT_MAX];
	struct sums sums;
	int calls = 2;

	(void)state;
	count("SELECT a");
	count("SELECT a");
	for (; calls < 14; calls++) {
		snprintf(text, sizeof(text), "SELECT a_%d, '%*s' AS b, %*s", calls, 100, "",
		         2 * STATEMENT_TEXT_MAX, "");
		memset(text + 64, 'x', STATEMENT_TEXT_MAX + 100);
		count(text);
	}
	sums = read_all(false);
	assert_int_equal(sums.calls, calls);
	assert_in_range(sums.others, 1, calls - 3);
	for (; calls < 12 * STATEMENTS; calls++) {
		snprintf(text, sizeof(text), "SELECT c_%d", calls);
		count(text);
	}
	sums = read_all(false);
	assert_in_range(sums.statements, STATEMENTS, 2 * STATEMENTS);
	for (size_t cut = size; cut > 512; cut -= 512) { /* a reader never trusts the content */
		struct sums some = { 0 };

		statement_memory_read(memory, cut, &reading, add, &some);
		statement_reading_commit(&reading, false);
		assert_true(some.statements <= sums.statements);
	}
	/* The next statement makes room: all others are removed, with their texts. */
	statement_stats_set_max(1);
	count("SELECT d");
	assert_int_equal(statement_stats_counter(STATEMENTS_KEPT), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_not_stored, begin),
		cmocka_unit_test_setup(what_the_flusher_has_not_stored, begin),
		cmocka_unit_test_setup(what_was_folded, begin),
		cmocka_unit_test_setup(what_has_no_room, begin),
		cmocka_unit_test_setup(what_was_not_stored, begin),
	};

	size = statement_memory_bytes(STATEMENTS);
	memory = aligned_alloc(64, (size + 63) / 64 * 64);
	return memory ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
