/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stripped program with a static SQLite: host COUNT THREADS [fork | filter | maps | extension]. Each thread
 * runs COUNT statements on its own connection. Prints the number of statements run.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/filter.h"

/* SQLCipher's SQLite has no FTS5. */
#ifndef FTS
#define FTS "fts5"
#endif

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                              \
			_exit(9);                                                                            \
		}                                                                                            \
	} while (0)

static int count;

/* Prints rights, offset and file of the program's own mappings. */
static void print_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], *rights, *name;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		if ((rights = strchr(line, ' ')) && (name = strrchr(line, '/')) &&
		    strstr(name, "static_host"))
			printf("%.16s%s", rights, name);
	fclose(maps);
}

/* An automatic extension that fails if it runs outside of the program's own calls of sqlite3_open(). */
static __thread bool is_opening;

static int see_opening(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
	(void)db, (void)error, (void)api;
	CHECK(is_opening);
	return SQLITE_OK;
}

static void *work(void *argument)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;

	(void)argument;
	is_opening = true;
	CHECK(!sqlite3_open(":memory:", &db));
	is_opening = false;
	CHECK(!sqlite3_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)", NULL, NULL, NULL));
	CHECK(!sqlite3_exec(db, "CREATE VIRTUAL TABLE f USING " FTS "(body)", NULL, NULL, NULL));
	CHECK(!sqlite3_prepare_v2(db, "INSERT INTO t(b) VALUES (?)", -1, &stmt, NULL));
	for (int i = 0; i < count; i++) {
		sqlite3_bind_int(stmt, 1, i);
		CHECK(sqlite3_step(stmt) == SQLITE_DONE);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	CHECK(!sqlite3_exec(db, "INSERT INTO f SELECT 'word ' || b FROM t", NULL, NULL, NULL));
	CHECK(!sqlite3_prepare_v2(db, "SELECT count(*) FROM t, t AS u WHERE t.a + u.a > 7", -1, &stmt, NULL));
	CHECK(sqlite3_step(stmt) == SQLITE_ROW);
	CHECK(sqlite3_column_int64(stmt, 0) > 0);
	sqlite3_finalize(stmt);
	CHECK(!sqlite3_close(db));
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t thread[16];

	count = argc > 1 ? atoi(argv[1]) : 1;
	if (!threads) /* never opens a database */
		return printf("none\n") < 0;
	if (argc > 3 && !strcmp(argv[3], "filter")) /* as in a sandbox, which may inspect any system call */
		CHECK(filter_system_calls());
	if (argc > 3 && !strcmp(argv[3], "extension"))
		CHECK(!sqlite3_auto_extension((void (*)(void))see_opening));
	for (int i = 1; i < threads; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, NULL));
	work(NULL);
	for (int i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (argc > 3 && !strcmp(argv[3], "fork")) {
		int status;

		fflush(stdout);
		if (!fork()) {
			work(NULL);
			exit(0);
		}
		wait(&status);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	}
	if (argc > 3 && !strcmp(argv[3], "maps"))
		print_maps();
	printf("%d\n", threads * count);
	return 3;
}
