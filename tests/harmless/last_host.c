/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements at the end of a process: in exit handlers, and in destructors of the program and of libraries
 * that were loaded before and after queryprof.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "program.h"
#ifdef LINKED
#include "queryprof.h"
#endif

static sqlite3 *last_db;
static int how_many;

/* Called by destructors of libraries, too. */
__attribute__((visibility("default"))) void run_last(const char *mark);

void run_last(const char *mark)
{
	sqlite3_stmt *stmt;
	char *sql;

	if (!last_db)
		return;
	sql = sqlite3_mprintf(
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) "
		"SELECT max(x), '%s' FROM c",
		mark);
	CHECK(sqlite3_prepare_v2(last_db, sql, -1, &stmt, NULL) == SQLITE_OK);
	CHECK(sqlite3_step(stmt) == SQLITE_ROW);
	CHECK(sqlite3_column_int(stmt, 0) == 60000);
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
	printf("%d: %s\n", ++how_many, mark);
}

static void run_at_exit(void)
{
	run_last("exit handler");
}

__attribute__((destructor)) static void run_in_destructor(void)
{
	run_last("destructor");
}

static void open_last(void)
{
	const char *later = getenv("QUERYPROF_TEST_LATER");
	bool is_attached;

	atexit(run_at_exit);
	last_db = open_db();
	is_attached = library_path() != NULL;
#ifdef LINKED
	is_attached = true;
	CHECK(qp_init(NULL) == QP_OK);
	CHECK(qp_attach(last_db) == QP_OK);
#endif
	run_last("main");
	/* Creates the file now, because there is little time at the end. */
	if (is_attached)
		ask(last_db, "SELECT count(*) FROM system.trace_log");
	if (later)
		CHECK(dlopen(later, RTLD_NOW) != NULL);
}

static void last_return(void)
{
	open_last();
}

static void last_exit(void)
{
	open_last();
	exit(3);
}

static void *end_last(void *unused)
{
	(void)unused;
	usleep(100000);
	return NULL;
}

/* The process ends with its last thread. */
static void last_thread(void)
{
	pthread_t thread;

	open_last();
	CHECK(pthread_create(&thread, NULL, end_last, NULL) == 0);
	pthread_exit(NULL);
}

const struct scenario scenarios[] = {
	{ "last_return", last_return },
	{ "last_exit", last_exit },
	{ "last_thread", last_thread },
	{ NULL, NULL },
};
