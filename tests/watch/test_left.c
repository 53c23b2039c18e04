/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's destructors leave sqlite3_reset(), _finalize() and _close() by longjmp(). The interrupted runs
 * are lost. The library sees the thread's later calls as usual.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define QUERIES 20
#define ROUNDS 30 /* more calls than the library can hold for a thread */

static __thread jmp_buf way_out;
static __thread int jumps;

static void jump(void *unused)
{
	(void)unused;
	jumps++;
	longjmp(way_out, 1);
}

/* Its auxiliary data is freed when the statement is reset. */
static void keep(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sqlite3_set_auxdata(context, 0, sqlite3_value_text(values[0]) ? &jumps : NULL, jump);
	sqlite3_result_int(context, 1);
}

static void add_function(sqlite3 *db)
{
	assert_int_equal(sqlite3_create_function_v2(db, "keep", 1, SQLITE_UTF8, NULL, keep, NULL, NULL, NULL),
	                 0);
}

static sqlite3_stmt *begin_statement(sqlite3 *db)
{
	sqlite3_stmt *stmt;

	add_function(db);
	stmt = host_prepare(db, "SELECT keep('a') FROM (VALUES (1), (2), (3))");
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	return stmt;
}

static void leave_reset(sqlite3 *db)
{
	sqlite3_reset(begin_statement(db));
}

static void leave_finalize(sqlite3 *db)
{
	sqlite3_finalize(begin_statement(db));
}

static void leave_step(sqlite3 *db)
{
	sqlite3_stmt *stmt = begin_statement(db);

	while (sqlite3_step(stmt) == SQLITE_ROW)
		;
}

/* The destructor of a bound value of a statement that never ran. */
static void leave_finalize_unused(sqlite3 *db)
{
	sqlite3_stmt *stmt = host_prepare(db, "SELECT ?");

	sqlite3_bind_text(stmt, 1, "value", -1, jump);
	sqlite3_finalize(stmt);
}

static void leave_clear(sqlite3 *db)
{
	sqlite3_stmt *stmt = host_prepare(db, "SELECT ?");

	sqlite3_bind_text(stmt, 1, "value", -1, jump);
	sqlite3_step(stmt);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
}

static void leave_close(sqlite3 *db)
{
	sqlite3_create_function_v2(db, "f", 0, SQLITE_UTF8, NULL, keep, NULL, NULL, jump);
	sqlite3_close(db);
}

static void leave_close_v2(sqlite3 *db)
{
	sqlite3_create_function_v2(db, "f", 0, SQLITE_UTF8, NULL, keep, NULL, NULL, jump);
	sqlite3_close_v2(db);
}

static void leave_zombie(sqlite3 *db)
{
	sqlite3_stmt *stmt = host_prepare(db, "SELECT 1");

	sqlite3_create_function_v2(db, "f", 0, SQLITE_UTF8, NULL, keep, NULL, NULL, jump);
	sqlite3_step(stmt);
	sqlite3_close_v2(db);
	sqlite3_finalize(stmt);
}

static const struct {
	const char *name;
	void (*leave)(sqlite3 *db);
} ways[] = {
	{ "reset", leave_reset },       { "finalize", leave_finalize },
	{ "step", leave_step },         { "finalize, never run", leave_finalize_unused },
	{ "clear", leave_clear },       { "close", leave_close },
	{ "close_v2", leave_close_v2 }, { "the last finalize of a zombie", leave_zombie },
};
#define WAYS (sizeof(ways) / sizeof(*ways))

/* Runs deeper on the stack than the jump's target. */
static __attribute__((noinline)) void query(sqlite3 *db, int depth)
{
	char room[512];

	memset(room, depth, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");

	if (depth)
		query(db, depth - 1);
	else
		host_exec(db, "SELECT /* seen */ 1");
	__asm__ volatile("" : : "r"(room) : "memory"); /* no tail call */
}

static __attribute__((noinline)) void leave(void (*way)(sqlite3 *db), int depth)
{
	char room[256];

	memset(room, depth, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");

	if (depth)
		leave(way, depth - 1);
	else if (!setjmp(way_out))
		way(host_open(""));
	__asm__ volatile("" : : "r"(room) : "memory"); /* no tail call */
}

static int failures;

/* Runs a query below a gap, in which the abandoned frames are unchanged. The query therefore seems to be
 * inside them. Returns the number of queries that the library saw. */
static __attribute__((noinline)) int64_t query_below(sqlite3 *db)
{
	char gap[128 << 10];
	int64_t before = host_metric("queries_logged"); /* writes nothing above the gap's end */

	__asm__ volatile("" : : "r"(gap) : "memory");
	host_exec(db, "SELECT /* seen below */ 1");
	__asm__ volatile("" : : "r"(gap) : "memory"); /* no tail call */
	return host_metric("queries_logged") - before;
}

static __attribute__((noinline)) void leave_at_once(void (*way)(sqlite3 *db), sqlite3 *db)
{
	char room[512]; /* keeps the registers that query_below() saves above the frames */

	__asm__ volatile("" : : "r"(room) : "memory");
	if (!setjmp(way_out))
		way(db);
}

static void test_gap(void **state)
{
	sqlite3 *db = host_open("");
	int missing = 0;

	(void)state;
	for (size_t way = 0; way < WAYS; way++) {
		for (int round = 0; round < ROUNDS; round++) {
			leave_at_once(ways[way].leave, host_open(""));
			if (query_below(db) != 1 && !missing++)
				printf("after %s, round %d, nothing was seen\n", ways[way].name, round);
		}
	}
	sqlite3_close(db);
	assert_int_equal(missing, 0);
}

static void *use(void *context)
{
	sqlite3 *db = host_open(""), *fresh;

	for (size_t way = 0; way < WAYS; way++) {
		for (int round = 0; round < ROUNDS; round++) {
			int64_t before;

			if (context && (size_t)(intptr_t)context - 1 != way)
				continue;
			jumps = 0;
			leave(ways[way].leave, round % 7);
			assert_int_equal(jumps, 1);
			fresh = host_open("");
			before = host_metric("queries_logged");
			for (int i = 0; i < QUERIES; i++)
				query(i % 2 ? db : fresh, i % 5);
			if (host_metric("queries_logged") - before < QUERIES) {
				printf("after %s, round %d: %d of %d queries were seen\n", ways[way].name,
				       round, (int)(host_metric("queries_logged") - before), QUERIES);
				failures++;
			}
			sqlite3_close(fresh);
		}
	}
	sqlite3_close(db);
	return NULL;
}

static void test_one_thread(void **state)
{
	(void)state;
	use(NULL);
	assert_int_equal(failures, 0);
}

/* Each way runs on a thread of its own, which has not left any other call. */
static void test_threads(void **state)
{
	(void)state;
	for (size_t way = 0; way < WAYS; way++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, use, (void *)(way + 1)), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(failures, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads), cmocka_unit_test(test_one_thread),
		                            cmocka_unit_test(test_gap) };

	host_begin(argc > 1 ? argv[1] : "loaded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
