/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the open runs, newest first, and the open transactions for which a thread works outside calls. Never
 * finds ended ones, or those of another thread or of the slot's previous thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "handler/outside.h"
#include "wire/open_run.h"

static struct thread thread, other;

/* A run of `thread` that waits for its next row. */
struct left {
	struct open_run open;
	struct query_counts counts;
	struct query_tag tag;
};

static void leave(struct left *run, uint64_t number)
{
	run->open = (struct open_run){ .shown = 1, .key = { number, ~number } };
	run->counts = (struct query_counts){ .open = &run->open, .slot = &thread };
	run->tag = (struct query_tag){ .key = run->open.key, .counts = &run->counts };
	outside_keep_run(&thread, &thread.queries[0]);
	thread.queries[0] = run->tag;
}

/* Returns the number of the found run, or 0. */
static uint64_t found(void)
{
	struct outside_work work;

	outside_find(&thread, &work);
	assert_true(!work.counts || work.counts->open->key.hi == work.key.hi);
	return work.key.hi;
}

static int set_up(void **state)
{
	(void)state;
	memset(&thread, 0, sizeof(thread));
	outside_is_on = true;
	return 0;
}

static void test_newest_run(void **state)
{
	static struct left runs[OUTSIDE_RUNS + 2];

	(void)state;
	assert_int_equal(found(), 0);
	for (uint64_t i = 0; i < OUTSIDE_RUNS + 2; i++) {
		leave(&runs[i], i + 1);
		assert_int_equal(found(), i + 1);
	}
	/* The runs end, newest first. The oldest had lost its place. */
	for (uint64_t i = OUTSIDE_RUNS + 1; i > 0; i--) {
		runs[i].open.shown = 0;
		assert_int_equal(found(), i > 1 ? i : 0);
	}
}

static void test_not_open(void **state)
{
	static struct left run;

	(void)state;
	leave(&run, 1);
	assert_int_equal(found(), 1);
	thread.nesting = 1; /* the thread is in a query */
	assert_int_equal(found(), 0);
	thread.nesting = 0;
	outside_is_on = false;
	assert_int_equal(found(), 0);
	outside_is_on = true;
	run.counts.slot = &other; /* another thread stepped it last */
	assert_int_equal(found(), 0);
	run.counts.slot = &thread;
	run.open.key.lo++; /* the statement's next run */
	assert_int_equal(found(), 0);
	leave(&run, 2);
	assert_int_equal(found(), 2);
	outside_forget(&thread);
	assert_int_equal(found(), 0);
}

static uint32_t transaction(void)
{
	struct outside_work work;

	return outside_find(&thread, &work) ? work.transaction : 0;
}

static void test_transactions(void **state)
{
	static struct open_transaction of[OUTSIDE_TRANSACTIONS];
	static struct left run;
	struct outside_work work;

	(void)state;
	for (uint32_t i = 0; i < OUTSIDE_TRANSACTIONS; i++) {
		outside_enter_transaction(&thread, &of[i]);
		assert_int_equal(transaction(), i);
		of[i].number = i + 1;
		assert_int_equal(transaction(), i + 1);
	}
	of[3].has_ended = true; /* its run has not */
	assert_int_equal(transaction(), 3);
	of[2].number = 0;
	assert_int_equal(transaction(), 2);
	outside_enter_transaction(&other, &of[1]); /* another thread now uses the connection */
	assert_int_equal(transaction(), 1);
	leave(&run, 7);
	assert_true(outside_find(&thread, &work));
	assert_int_equal(work.key.hi, 7);
	assert_int_equal(work.transaction, 1);
	outside_forget(&thread);
	assert_int_equal(transaction(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_newest_run, set_up),
		cmocka_unit_test_setup(test_not_open, set_up),
		cmocka_unit_test_setup(test_transactions, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
