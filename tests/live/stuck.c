/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host whose threads are inside queries.
 *
 * usage: stuck MODE [PATH]
 *   long       one endless query, and two prepared statements that do not run
 *   nested     a function of a query runs another one
 *   prepares   does nothing but prepare and finalize
 *   threads    64 threads, each in a query that names it
 *   waits      waits for a lock of the database at PATH, in the busy handler
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#define ENDLESS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x), '%s' FROM c"
#define THREADS 64

static sqlite3 *open_db(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		exit(2);
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf(ENDLESS, name);
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		exit(2);
	sqlite3_free(sql);
	return stmt;
}

static void run_inner(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sqlite3_stmt *inner = prepare(sqlite3_context_db_handle(context), "inner");

	(void)argc, (void)argv;
	sqlite3_step(inner);
	sqlite3_finalize(inner);
}

static void *run_thread(void *context)
{
	char name[32];

	snprintf(name, sizeof(name), "thread %ld", (long)(size_t)context);
	sqlite3_step(prepare(open_db(":memory:"), name));
	return NULL;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	sqlite3 *db = open_db(strcmp(mode, "waits") ? ":memory:" : argv[2]);
	sqlite3_stmt *idle = prepare(db, "idle"), *run = prepare(db, "long"), *later = prepare(db, "later"),
		     *stmt;

	puts("ready");
	fflush(stdout);
	if (strcmp(mode, "long") == 0) {
		sqlite3_step(run);
	} else if (strcmp(mode, "nested") == 0) {
		sqlite3_create_function(db, "run_inner", 0, SQLITE_UTF8, NULL, run_inner, NULL, NULL);
		if (sqlite3_prepare_v2(db, "SELECT run_inner()", -1, &stmt, NULL))
			return 2;
		sqlite3_step(stmt);
	} else if (strcmp(mode, "prepares") == 0) {
		for (;;)
			sqlite3_finalize(prepare(db, "prepared"));
	} else if (strcmp(mode, "threads") == 0) {
		pthread_t threads[THREADS];

		for (size_t i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, run_thread, (void *)i);
		pause();
	} else if (strcmp(mode, "waits") == 0) {
		sqlite3_busy_timeout(db, 3600000);
		sqlite3_exec(db, "INSERT INTO t VALUES (2) /* waits */", NULL, NULL, NULL);
	}
	/* Otherwise the compiler would not keep them. */
	sqlite3_finalize(idle);
	sqlite3_finalize(later);
	return 0;
}
