/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching to a connection whose database another process has locked exclusively returns immediately, and
 * the connection's busy_timeout keeps its meaning. Built with the system's SQLite, whose calls are hooked,
 * and with a static SQLite. The static SQLite is patched, except if the program has several threads that
 * must not be stopped (STATIC).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include <pthread.h>
#include <queryprof.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/must.h"
#include "../lib/filter.h"

#ifdef STATIC
#define IS_STATIC 1
#else
#define IS_STATIC 0
#endif

#define TIMEOUT_MS 1500
#define LONG_MS 300000 /* a call that waits this long is noticed on any machine */
/* A wait takes its time in every attempt. A busy machine does not delay every attempt. */
#define ATTEMPTS 5

static char folder[] = "/tmp/queryprof-locked-XXXXXX", path[64];
static int commands; /* a byte to the other process: lock or unlock */
static int answers;
static pid_t locker;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The other process, which locks the database and never loads queryprof. */
static void keep_locking(int from, int to)
{
	sqlite3 *db;
	char command;

	if (sqlite3_open(path, &db))
		abort();
	must_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (7)");
	for (;;) {
		if (write(to, "", 1) != 1 || read(from, &command, 1) != 1)
			_exit(0);
		must_exec(db, command == 'l' ? "BEGIN EXCLUSIVE" : "ROLLBACK");
	}
}

static void send_command(char command)
{
	char answer;

	assert_int_equal(write(commands, &command, 1), 1);
	assert_int_equal(read(answers, &answer, 1), 1);
}

static int start(void **state)
{
	int to[2], from[2];
	char answer;

	(void)state;
	if (!mkdtemp(folder) || pipe(to) || pipe(from))
		return -1;
	snprintf(path, sizeof(path), "%s/locked.db", folder);
	locker = fork();
	if (!locker) {
		close(to[1]);
		keep_locking(to[0], from[1]);
	}
	commands = to[1];
	answers = from[0];
	return read(answers, &answer, 1) == 1 ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	kill(locker, SIGKILL);
	waitpid(locker, NULL, 0);
	return unlink(path) || rmdir(folder);
}

static sqlite3 *open_database(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, TIMEOUT_MS);
	return db;
}

static void attach(sqlite3 *db)
{
	if (qp_attach(db))
		fail_msg("%s", qp_error());
}

static int busy_timeout(sqlite3 *db)
{
	sqlite3_stmt *stmt;
	int ms;

	must(db, sqlite3_prepare_v2(db, "PRAGMA busy_timeout", -1, &stmt, NULL), "PRAGMA busy_timeout");
	must(db, sqlite3_step(stmt), "PRAGMA busy_timeout");
	ms = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return ms;
}

static void attach_at_once(sqlite3 *db)
{
	int64_t before = now_ms();

	sqlite3_busy_timeout(db, LONG_MS);
	attach(db);
	assert_true(now_ms() - before < LONG_MS);
	assert_int_equal(busy_timeout(db), LONG_MS);
	sqlite3_busy_timeout(db, TIMEOUT_MS);
}

/* Returns the result code of a statement that is prepared and stepped once, and its duration. */
static int attempt(sqlite3 *db, const char *sql, int64_t *ms)
{
	int64_t before = now_ms();
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (!rc)
		rc = sqlite3_step(stmt);
	*ms = now_ms() - before;
	sqlite3_finalize(stmt);
	return rc;
}

static void assert_waits_once(sqlite3 *db, const char *sql)
{
	int64_t ms = INT64_MAX;

	for (int i = 0; i < ATTEMPTS && ms >= 2 * TIMEOUT_MS; i++) {
		assert_int_equal(attempt(db, sql, &ms), SQLITE_BUSY);
		assert_string_equal(sqlite3_errmsg(db), "database is locked");
		assert_true(ms >= TIMEOUT_MS);
	}
	if (ms >= 2 * TIMEOUT_MS)
		fail_msg("%s: waited %d ms, busy_timeout is %d", sql, (int)ms, TIMEOUT_MS);
}

/* Returns the number of attempts. */
static int assert_at_once(sqlite3 *db, const char *sql, int expected)
{
	int64_t ms = INT64_MAX;
	int attempts = 0;

	while (attempts < ATTEMPTS && ms >= TIMEOUT_MS / 2) {
		int rc = attempt(db, sql, &ms);
		if (rc != expected)
			fail_msg("%s: %d after %d ms: %s", sql, rc, (int)ms, sqlite3_errmsg(db));
		attempts++;
	}
	if (ms >= TIMEOUT_MS / 2)
		fail_msg("%s: took %d ms", sql, (int)ms);
	return attempts;
}

static void assert_works(sqlite3 *db)
{
	if (IS_STATIC) /* without hooks, a statement that names the schema is not seen */
		assert_int_equal(qp_attach(db), QP_OK);
	assert_at_once(db, "SELECT name FROM system.settings", SQLITE_ROW);
	assert_at_once(db, "SELECT 1 FROM metrics", SQLITE_ROW);
	assert_at_once(db, "PRAGMA system.log_queries", SQLITE_ROW);
	if (!IS_STATIC)
		assert_at_once(db,
		               "SELECT 1 FROM system.metrics WHERE metric = 'libraries' AND (value LIKE '%: "
		               "patched code' OR value LIKE '%: import tables')",
		               SQLITE_ROW);
	assert_at_once(db, "SELECT x FROM t", SQLITE_ROW);
}

static void a_locked_database_is_not_waited_for(void **state)
{
	sqlite3 *db = open_database();

	(void)state;
	send_command('l');
	attach_at_once(db);
	assert_at_once(db, "SELECT set_setting('log_queries', 1)", SQLITE_ROW);
	assert_waits_once(db, "SELECT x FROM t");
	assert_waits_once(db, "SELECT name FROM system.settings");
	/* It does not read main, so it does not wait. */
	assert_at_once(db, "PRAGMA system.unknown", IS_STATIC ? SQLITE_ERROR : SQLITE_BUSY);
	assert_waits_once(db, "SELECT x FROM t"); /* busy_timeout is unchanged */
	send_command('u');
	assert_works(db);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* After main's schema was read, the tables no longer need main. */
static void tables_come_while_main_is_locked(void **state)
{
	sqlite3 *db = open_database();

	(void)state;
	assert_at_once(db, "SELECT x FROM t", SQLITE_ROW);
	attach_at_once(db);
	assert_at_once(db, "SELECT x FROM t", SQLITE_ROW);
	send_command('l');
	/* The library does not look for a name in main, because the lock of that read could cause
	 * SQLITE_BUSY for a writer. */
	assert_at_once(db, "SELECT count(*) FROM trace_log", SQLITE_ROW);
	assert_at_once(db, "SELECT name FROM system.settings", SQLITE_ROW);
	assert_at_once(db, "UPDATE system.settings SET value = value", SQLITE_DONE);
	assert_waits_once(db, "SELECT x FROM t");
	send_command('u');
	assert_works(db);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int busy_calls;

static int count_busy(void *context, int count)
{
	(void)context, (void)count;
	busy_calls++;
	return 0;
}

static void the_hosts_busy_handler_is_not_called(void **state)
{
	sqlite3 *db = open_database();
	int attempts;

	(void)state;
	sqlite3_busy_handler(db, count_busy, NULL);
	assert_at_once(db, "SELECT x FROM t", SQLITE_ROW); /* reads main's schema */
	busy_calls = 0;
	send_command('l');
	attach(db);
	assert_int_equal(busy_calls, 0);
	attempts = assert_at_once(db, "SELECT x FROM t", SQLITE_BUSY);
	assert_int_equal(busy_calls, attempts); /* the host's handler is still set */
	send_command('u');
	assert_works(db);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#ifdef STATIC
static void *wait_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

__attribute__((constructor)) static void have_threads(void)
{
	pthread_t thread;

	if (!filter_system_calls() || pthread_create(&thread, NULL, wait_for_ever, NULL))
		abort();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_locked_database_is_not_waited_for),
		cmocka_unit_test(tables_come_while_main_is_locked),
		cmocka_unit_test(the_hosts_busy_handler_is_not_called),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
