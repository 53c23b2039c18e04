/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension in each kind of build, loaded as usual: hooked functions are called, also in a child that
 * executes another program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_loads(void **state)
{
	sqlite3 *db;
	char *error = NULL;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_enable_load_extension(db, 1), SQLITE_OK);
	if (sqlite3_load_extension(db, QUERYPROF_LIBRARY, NULL, &error))
		fail_msg("%s", error);
	assert_int_equal(
		sqlite3_exec(
			db,
			"CREATE TABLE t(x); INSERT INTO t VALUES (1); SELECT count(*) FROM system.processes",
			NULL, NULL, NULL),
		SQLITE_OK);
	child = fork();
	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit $1", "sh", "7", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_loads) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
