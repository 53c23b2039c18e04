/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads write and one reads a database in each journal mode, while both timers tick every 100 us. No
 * call fails that would succeed without the timers. The SQL also calls functions of the host that read from
 * a slow pipe and wait for a lock.
 *
 *   database_faults LIBRARY
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TRANSACTIONS 40

static char folder[] = "/tmp/queryprof-faults-XXXXXX";
static const char *library;
static int failed;

static void fail(sqlite3 *db, const char *what)
{
	fprintf(stderr, "%s: %d %s, errno %d\n", what, sqlite3_extended_errcode(db), sqlite3_errmsg(db),
	        sqlite3_system_errno(db));
	__atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
}

static int run(sqlite3 *db, const char *sql)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	if (rc && rc != SQLITE_BUSY)
		fail(db, sql);
	return rc;
}

static void *write_slowly(void *context)
{
	const struct timespec pause = { 0, 5000000 };

	for (int i = 0; i < 4; i++) {
		nanosleep(&pause, NULL);
		if (write(*(int *)context, "slow", 4) != 4)
			abort();
	}
	return NULL;
}

/* Reads 16 bytes that arrive in four pieces. The result is the error, or 0. */
static void read_slowly(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int fds[2], error = 0;
	char bytes[16];
	pthread_t thread;
	ssize_t got;

	(void)argc, (void)argv;
	if (pipe(fds) || pthread_create(&thread, NULL, write_slowly, &fds[1]))
		abort();
	for (size_t size = 0; !error && size < sizeof(bytes); size += (size_t)got)
		if ((got = read(fds[0], bytes, sizeof(bytes) - size)) <= 0)
			error = got ? errno : EPIPE;
	pthread_join(thread, NULL);
	close(fds[0]);
	close(fds[1]);
	sqlite3_result_int(context, error);
}

static void *unlock_later(void *context)
{
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	flock(*(int *)context, LOCK_UN);
	return NULL;
}

/* Waits for an flock() lock that another open file holds, and requests an fcntl() lock. */
static void wait_for_lock(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct flock wanted = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[64];
	int holder, waiter, error = 0;
	pthread_t thread;

	(void)argc, (void)argv;
	snprintf(path, sizeof(path), "%s/lock", folder);
	holder = open(path, O_RDWR | O_CREAT, 0600);
	waiter = open(path, O_RDWR);
	if (flock(holder, LOCK_EX) || pthread_create(&thread, NULL, unlock_later, &holder))
		abort();
	if (flock(waiter, LOCK_EX) || fcntl(waiter, F_SETLKW, &wanted) || fsync(waiter))
		error = errno;
	pthread_join(thread, NULL);
	close(holder);
	close(waiter);
	sqlite3_result_int(context, error);
}

static sqlite3 *open_sampled(const char *path)
{
	sqlite3 *db;
	char *error = NULL;

	if (sqlite3_open(path, &db)) {
		fail(db, path);
		exit(1);
	}
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
	if (sqlite3_load_extension(db, library, "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
	sqlite3_busy_timeout(db, 60000);
	sqlite3_create_function(db, "read_slowly", 0, SQLITE_UTF8, NULL, read_slowly, NULL, NULL);
	sqlite3_create_function(db, "wait_for_lock", 0, SQLITE_UTF8, NULL, wait_for_lock, NULL, NULL);
	run(db, "PRAGMA query_profiler_cpu_time_period_ns = 100000;"
	        "PRAGMA query_profiler_real_time_period_ns = 100000");
	return db;
}

struct worker {
	const char *path, *mode;
	int writes;
};

static void *work(void *context)
{
	const struct worker *worker = context;
	sqlite3 *db = open_sampled(worker->path);
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA journal_mode = %s", worker->mode);
	run(db, sql);
	for (int i = 0; i < TRANSACTIONS; i++) {
		if (!worker->writes) {
			run(db, "SELECT count(*), max(b) FROM t");
			continue;
		}
		if (run(db, "BEGIN IMMEDIATE; INSERT INTO t(b) VALUES (randomblob(3000)); UPDATE t SET b = "
		            "randomblob(2000) "
		            "WHERE id % 7 = 3; COMMIT"))
			fail(db, "a transaction");
		if (i == TRANSACTIONS / 2)
			run(db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
	}
	sqlite3_close(db);
	return NULL;
}

static int read_text(void *context, int count, char **values, char **names)
{
	(void)names;
	snprintf(context, 64, "%s", count && values[0] ? values[0] : "");
	return 0;
}

static void check(sqlite3 *db, const char *sql, const char *expected)
{
	char text[64] = "";

	if (sqlite3_exec(db, sql, read_text, text, NULL) || strcmp(text, expected)) {
		fprintf(stderr, "%s: %s\n", sql, text);
		fail(db, sql);
	}
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "delete", "truncate", "persist", "wal", "memory", "off" };
	char path[64], command[64], text[64] = "";
	sqlite3 *db;

	if (argc < 2 || !mkdtemp(folder))
		return 2;
	library = argv[1];
	/* The budget would take fewer samples. */
	setenv("QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT", "0", 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		pthread_t threads[3];
		struct worker workers[3];

		snprintf(path, sizeof(path), "%s/%s.db", folder, modes[i]);
		db = open_sampled(path);
		run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, b)");
		for (int w = 0; w < 3; w++) {
			workers[w] = (struct worker){ path, modes[i], w < 2 };
			pthread_create(&threads[w], NULL, work, &workers[w]);
		}
		for (int w = 0; w < 3; w++)
			pthread_join(threads[w], NULL);
		snprintf(text, sizeof(text), "%d", 2 * TRANSACTIONS);
		check(db, "SELECT count(*) FROM t", text);
		check(db, "PRAGMA integrity_check", "ok");
		check(db, "SELECT read_slowly() + wait_for_lock()", "0");
		sqlite3_close(db);
	}
	db = open_sampled(":memory:");
	run(db,
	    "PRAGMA query_profiler_cpu_time_period_ns = 0; PRAGMA query_profiler_real_time_period_ns = 0");
	sqlite3_exec(db, "SELECT count(*) FROM system.trace_log", read_text, text, NULL);
	printf("%s samples\n", text);
	if (atol(text) < 1000)
		failed = 1;
	sqlite3_close(db);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || failed;
}
