/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a sanitizer's shared run-time library: `sanitized fine`, and `sanitized wrong`, which has an
 * error that the sanitizer reports.
 */
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared, is_wrong, arrived;
static __thread int is_met;

#ifdef OWN_OPTIONS
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=1";
}
#endif

/*
 * Both threads are inside their query from here on. The order is relaxed: neither waiting nor a lock of
 * SQLite orders the first writes that follow, so ThreadSanitizer finds them however the threads are
 * scheduled.
 */
static void meet(void)
{
	if (is_met)
		return;
	is_met = 1;
	__atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < 2)
		sched_yield();
}

static void count(sqlite3_context *context, int arguments, sqlite3_value **values)
{
	(void)arguments;
	(void)values;
	if (is_wrong) {
		meet();
		shared++;
	}
	sqlite3_result_int(context, 1);
}

static void *query(void *result)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_create_function(db, "count_one", 0, SQLITE_UTF8, NULL, count, NULL, NULL) ||
	    sqlite3_exec(db,
	                 "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + count_one() FROM c"
	                 " WHERE x < 50000) SELECT sum(x) FROM c",
	                 NULL, NULL, NULL))
		exit(9);
	sqlite3_close(db);
	return result;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char *text;

	is_wrong = argc == 2 && strcmp(argv[1], "wrong") == 0;
	if (pthread_create(&thread, NULL, query, NULL))
		return 9;
	query(NULL);
	pthread_join(thread, NULL);
	text = malloc(10);
	if (!text)
		return 9;
	text[0] = 'x';
	text[9] = 0;
	if (!is_wrong)
		free(text);
	printf("%c\n", is_wrong ? text[9 + argc / 2] : 'x');
	text = NULL;
	return is_wrong ? 0 : 3;
}
