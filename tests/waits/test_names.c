/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library names causes and locks while a wait lasts. These names must equal the names in the trace
 * file's views.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "wire/wait.h"

static sqlite3 *make_file(void)
{
	FILE *file = fopen(SCHEMA, "r");
	char *text = NULL;
	size_t room = 0;
	sqlite3 *db;

	assert_non_null(file);
	assert_true(getdelim(&text, &room, 0, file) > 0);
	fclose(file);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	free(text);
	return db;
}

static int compare(sqlite3 *db, const char *sql, const char *(*name_of)(uint32_t))
{
	sqlite3_stmt *rows;
	int count = 0;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
	for (; sqlite3_step(rows) == SQLITE_ROW; count++)
		assert_string_equal(name_of((uint32_t)sqlite3_column_int(rows, 0)),
		                    (const char *)sqlite3_column_text(rows, 1));
	sqlite3_finalize(rows);
	return count;
}

static void test_names(void **state)
{
	sqlite3 *db = make_file();
	int causes = compare(db, "SELECT cause, name FROM wait_causes", wait_cause_name);
	int locks = compare(db, "SELECT object, name FROM wait_objects WHERE object BETWEEN 16 AND 31",
	                    wait_lock_name);

	(void)state;
	for (uint32_t number = 0; number < 300; number++) {
		causes -= *wait_cause_name(number) != 0;
		locks -= *wait_lock_name(number) != 0;
	}
	assert_int_equal(causes, 0);
	assert_int_equal(locks, 0);
	/* A wait in a user function has its cause as the object, under a number of its own. */
	assert_int_equal(
		compare(db, "SELECT object - 32, name FROM wait_objects WHERE object > 32", wait_cause_name),
		WAIT_FUTEX + 1); /* and WAIT_PROCESS */
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
