/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite built with fewer features (SQLITE_OMIT_PROGRESS_CALLBACK as in better-sqlite3,
 * SQLITE_THREADSAFE=0) has NULL in its table of routines.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sqlite3ext.h>

static sqlite3_api_routines routines;
#define sqlite3_api (&routines)

/* The functions of the system's library, which this program links under their plain names. */
#undef sqlite3_auto_extension
#undef sqlite3_close
#undef sqlite3_open
#undef sqlite3_reset_auto_extension
int sqlite3_auto_extension(void (*)(void));
void sqlite3_reset_auto_extension(void);
int sqlite3_open(const char *, sqlite3 **);
int sqlite3_close(sqlite3 *);

static int take_table(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error;
	routines = *api;
	return SQLITE_OK;
}

static int print_row(void *rows, int count, char **values, char **names)
{
	(void)names;
	++*(int *)rows;
	for (int i = 0; i < count; i++)
		printf("%s ", values[i] ? values[i] : "NULL");
	printf("\n");
	return 0;
}

static void test_omitted(void **state)
{
	int (*init)(sqlite3 *, char **, const sqlite3_api_routines *);
	void *library = dlopen(QUERYPROF_LIBRARY, RTLD_NOW);
	char *error = NULL;
	sqlite3 *db;
	int rows = 0;

	(void)state;
	assert_non_null(library);
	*(void **)&init = dlsym(library, "sqlite3_queryprof_init");
	assert_int_equal(sqlite3_auto_extension((void (*)(void))take_table), SQLITE_OK);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	sqlite3_reset_auto_extension();
	assert_non_null(routines.prepare_v3);
	routines.progress_handler = NULL;
	routines.set_authorizer = NULL;
	routines.mutex_alloc = NULL;
	routines.mutex_enter = NULL;
	routines.mutex_free = NULL;
	routines.mutex_leave = NULL;
	routines.mutex_try = NULL;
	assert_int_equal(init(db, &error, &routines), SQLITE_OK_LOAD_PERMANENTLY);
	assert_int_equal(
		sqlite3_exec(db,
	                     "PRAGMA log_queries_min_query_duration_ns = 0;"
	                     "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n LIMIT 300000)"
	                     "SELECT count(*) FROM n",
	                     NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "SELECT type, query FROM system.query_log", print_row, &rows, &error),
		SQLITE_OK);
	assert_true(rows >= 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_omitted) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
