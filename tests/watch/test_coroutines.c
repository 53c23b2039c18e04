/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coroutines switch inside an SQL function, like fibers in PHP and Ruby and greenlets in Python. Calls
 * begin on several stacks of one thread and end in any order.
 */
#include "host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define COROUTINES 6
#define STACK_BYTES ((size_t)256 << 10)

struct coroutine {
	ucontext_t context;
	void *stack;
	sqlite3 *db;
	int number, rounds;
	int64_t sum;
	int is_done;
};

static struct coroutine all[COROUTINES];
static ucontext_t scheduler;
static struct coroutine *current;

static void yield(void)
{
	struct coroutine *self = current;

	if (!self)
		return;
	swapcontext(&self->context, &scheduler);
	current = self;
}

/* The SQL function that switches. Some of its calls also run SQL. */
static void switch_away(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int value = sqlite3_value_int(argv[0]);

	(void)argc;
	yield();
	if (value % 3 == 0)
		host_exec(sqlite3_context_db_handle(context), "SELECT 1; SELECT 2 FROM (VALUES (1), (2))");
	yield();
	sqlite3_result_int(context, value);
}

static int on_row(void *context, int count, char **values, char **names)
{
	(void)count, (void)names;
	*(int64_t *)context += atoi(values[0]);
	yield();
	return 0;
}

static void query(struct coroutine *self)
{
	for (int i = 0; i < self->rounds; i++) {
		sqlite3_stmt *stmt = host_prepare(
			self->db, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
				  "WHERE x < 7) SELECT switch(x) FROM c");

		while (sqlite3_step(stmt) == SQLITE_ROW)
			self->sum += sqlite3_column_int(stmt, 0);
		yield();
		sqlite3_finalize(stmt);
		sqlite3_exec(self->db, "SELECT switch(column1) FROM (VALUES (1), (2))", on_row, &self->sum,
		             NULL);
	}
}

static void run(void)
{
	struct coroutine *self = current;

	query(self);
	self->is_done = 1;
	swapcontext(&self->context, &scheduler);
}

static void make(struct coroutine *coroutine, int number)
{
	memset(coroutine, 0, sizeof(*coroutine));
	coroutine->number = number;
	coroutine->rounds = 5 + number;
	coroutine->db = host_open("");
	sqlite3_create_function(coroutine->db, "switch", 1, SQLITE_UTF8, NULL, switch_away, NULL, NULL);
	coroutine->stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(coroutine->stack, MAP_FAILED);
	getcontext(&coroutine->context);
	coroutine->context.uc_stack.ss_sp = coroutine->stack;
	coroutine->context.uc_stack.ss_size = STACK_BYTES;
	coroutine->context.uc_link = NULL;
	makecontext(&coroutine->context, run, 0);
}

static void resume(struct coroutine *coroutine)
{
	current = coroutine;
	swapcontext(&scheduler, &coroutine->context);
	current = NULL;
}

static void check(struct coroutine *coroutine)
{
	assert_int_equal(coroutine->sum, coroutine->rounds * (28 + 3));
	munmap(coroutine->stack, STACK_BYTES);
	assert_int_equal(sqlite3_close(coroutine->db), SQLITE_OK);
}

static unsigned random_number(void)
{
	static unsigned seed = 12345;

	seed = seed * 1103515245u + 12345u;
	return seed >> 16;
}

/* The calls end in any order, and the thread itself has an open statement meanwhile. */
static void test_any_order(void **state)
{
	sqlite3 *db = host_open("");
	sqlite3_stmt *stmt = host_prepare(db, "VALUES (1), (2), (3), (4), (5), (6), (7), (8)");
	int left = COROUTINES;

	(void)state;
	for (int i = 0; i < COROUTINES; i++)
		make(&all[i], i);
	while (left) {
		struct coroutine *next = &all[random_number() % COROUTINES];

		if (next->is_done)
			continue;
		if (random_number() % 4 == 0)
			sqlite3_step(stmt);
		resume(next);
		left -= next->is_done;
	}
	for (int i = 0; i < COROUTINES; i++)
		check(&all[i]);
	sqlite3_finalize(stmt);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The scheduler runs inside an SQL function. */
static void drive(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int left = COROUTINES;

	(void)argc, (void)argv;
	for (int i = 0; left; i = (i + 1) % COROUTINES) {
		if (all[i].is_done)
			continue;
		resume(&all[i]);
		left -= all[i].is_done;
	}
	sqlite3_result_int(context, 1);
}

static void test_inside_a_query(void **state)
{
	sqlite3 *db = host_open("");

	(void)state;
	sqlite3_create_function(db, "drive", 0, SQLITE_UTF8, NULL, drive, NULL, NULL);
	for (int i = 0; i < COROUTINES; i++)
		make(&all[i], i);
	assert_int_equal(host_int(db, "SELECT drive() + (SELECT count(*) FROM (VALUES (1), (2)))"), 3);
	for (int i = 0; i < COROUTINES; i++)
		check(&all[i]);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Resumes a coroutine on another thread. */
static void *go_on(void *context)
{
	struct coroutine *coroutine = context;

	for (int i = 0; i < 3 && !coroutine->is_done; i++)
		resume(coroutine);
	return NULL;
}

static void test_other_thread(void **state)
{
	(void)state;
	for (int i = 0; i < COROUTINES; i++)
		make(&all[i], i);
	for (int left = COROUTINES; left;) {
		left = 0;
		for (int i = 0; i < COROUTINES; i++) {
			pthread_t thread;

			if (all[i].is_done)
				continue;
			resume(&all[i]);
			if (!all[i].is_done) {
				assert_int_equal(pthread_create(&thread, NULL, go_on, &all[i]), 0);
				pthread_join(thread, NULL);
			}
			left += !all[i].is_done;
		}
	}
	for (int i = 0; i < COROUTINES; i++)
		check(&all[i]);
}

/* Coroutines that are never resumed. Their stacks are unmapped while calls are active on them. */
static void test_given_up(void **state)
{
	sqlite3 *db = host_open("");

	(void)state;
	for (int round = 0; round < 40; round++) {
		make(&all[0], 0);
		for (int i = 0; i <= round % 5; i++)
			resume(&all[0]);
		munmap(all[0].stack, STACK_BYTES);
		assert_int_equal(host_int(db, "SELECT count(*) FROM (VALUES (1), (2))"), 2);
		/* the coroutine's connection cannot be closed any more */
	}
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_inside_a_query),
		cmocka_unit_test(test_other_thread),
		cmocka_unit_test(test_given_up),
	};

	/* Only one thread uses a connection at a time. */
	sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
	host_begin(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
