/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters in memory that another process holds, too: whenever a process is killed, they and
 * its file say what the file has not.
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

struct ring *state_ring; /* of collect/state.c, which is not here */

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

static uint64_t flush(bool is_stored)
{
	struct sums sums = { 0 };
	uint64_t number;

	assert_int_equal(statement_stats_next(add, &sums), 0);
	number = statement_stats_flush();
	statement_stats_commit(is_stored);
	return number;
}

static struct sums remains(uint64_t newest_flush)
{
	struct sums sums = { 0 };

	assert_int_equal(statement_memory_remains(memory, size, newest_flush, add, &sums), 0);
	return sums;
}

static void count(const char *text)
{
	const struct statement_name name = { .text = text, .database = "a.db" };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1 }, .seen_ns = 1 };

	statement_stats_add(statement_stats_find(&name), 1, &run);
}

/* The state of a forked child, which has other memory in the same place. */
static int begin(void **state)
{
	(void)state;
	statement_memory_place(memset(memory, 0, size), size);
	statement_stats_reset_in_child();
	statement_stats_set_max(STATEMENTS_MAX_DEFAULT);
	return 0;
}

static void what_the_file_has_not(void **state)
{
	struct sums sums = { 0 };
	uint64_t number;

	(void)state;
	assert_int_equal(remains(0).statements, 0);
	count("SELECT a");
	assert_int_equal(remains(0).calls, 1);
	statement_stats_next(add, &sums);
	number = statement_stats_flush();
	assert_int_not_equal(number, 0);
	count("SELECT a");
	/* Killed before the file has the flush, and behind it. */
	assert_int_equal(remains(0).calls, 2);
	assert_int_equal(remains(number - 1).calls, 2);
	assert_int_equal(remains(number).calls, 1);
	statement_stats_commit(true);
	assert_int_equal(remains(0).calls, 1);
	assert_int_equal(remains(number).calls, 1);
	assert_int_equal(flush(true), number + 1);
	assert_int_equal(remains(0).statements, 0);
	assert_int_equal(flush(true), 0);
}

static void a_flush_that_failed_is_none(void **state)
{
	uint64_t failed;

	(void)state;
	count("SELECT a");
	flush(true);
	count("SELECT a");
	failed = flush(false);
	assert_int_equal(remains(failed).calls, 1);
	count("SELECT a");
	assert_int_equal(flush(true), failed);
	assert_int_equal(remains(failed).statements, 0);
}

static void what_was_folded(void **state)
{
	char text[32];

	(void)state;
	statement_stats_set_max(STATEMENTS);
	for (int i = 0; i < 4 * STATEMENTS; i++) {
		snprintf(text, sizeof(text), "SELECT a_%d", i);
		count(text);
		if (i % 16 == 0)
			flush(true);
	}
	assert_true(statement_stats_counter(STATEMENTS_FOLDED) > 0);
	flush(true);
	assert_int_equal(remains(0).statements, 0);
	count("SELECT a_new");
	count("SELECT a_newer");
	assert_int_equal(remains(0).calls, 2);
}

/* More than there is room for lie in private memory. Their texts may, and then it is not known
 * whose the counts are. */
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
	sums = remains(0);
	assert_int_equal(sums.calls, calls);
	assert_in_range(sums.others, 1, calls - 3);
	for (; calls < 12 * STATEMENTS; calls++) {
		snprintf(text, sizeof(text), "SELECT c_%d", calls);
		count(text);
	}
	sums = remains(0);
	assert_in_range(sums.statements, STATEMENTS, 2 * STATEMENTS);
	for (size_t cut = size; cut > 512; cut -= 512) { /* and nothing that is found there is believed */
		struct sums some = { 0 };

		statement_memory_remains(memory, cut, 0, add, &some);
		assert_true(some.statements <= sums.statements);
	}
	/* All but the most used one go, with their texts. */
	statement_stats_set_max(1);
	flush(true);
	assert_int_equal(statement_stats_counter(STATEMENTS_KEPT), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_the_file_has_not, begin),
		cmocka_unit_test_setup(a_flush_that_failed_is_none, begin),
		cmocka_unit_test_setup(what_was_folded, begin),
		cmocka_unit_test_setup(what_has_no_room, begin),
		cmocka_unit_test_setup(what_the_file_has_not, begin),
	};

	size = statement_memory_bytes(STATEMENTS);
	memory = aligned_alloc(64, (size + 63) / 64 * 64);
	return memory ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
