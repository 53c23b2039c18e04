/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a recorded program that need C. dlsym() still depends on its caller: RTLD_NEXT finds SQLite after
 * the program, but would find nothing after the profiler.
 *
 * Closes a connection with two remaining statements, and prints the profiler's number of sessions: before and
 * after the close, after the first statement's end and after the second's.
 *
 * usage: closer LIBQUERYPROF
 */
#include <dlfcn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "queryprof.h"

static int (*metrics)(int (*)(void *, const qp_metric *), void *);

static int take_sessions(void *context, const qp_metric *metric)
{
	if (!strcmp(metric->name, "sessions"))
		*(int *)context = (int)metric->value;
	return 0;
}

static int sessions(void)
{
	int count = -1;

	metrics(take_sessions, &count);
	return count;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	sqlite3_stmt *first, *second;
	sqlite3 *db;
	int seen[4];

	if (dlsym(RTLD_NEXT, "sqlite3_libversion") != (void *)sqlite3_libversion ||
	    dlsym(RTLD_NEXT, "main") || dlsym(RTLD_DEFAULT, "sqlite3_step") != (void *)sqlite3_step)
		return 2;
	*(void **)&metrics = library ? dlsym(library, "qp_metrics") : NULL;
	if (!metrics || sqlite3_open(":memory:", &db) ||
	    sqlite3_prepare_v2(db, "VALUES (1), (2)", -1, &first, NULL) ||
	    sqlite3_prepare_v2(db, "VALUES (1), (2)", -1, &second, NULL))
		return 1;
	sqlite3_step(first);
	sqlite3_step(second);
	if (sqlite3_close(db) != SQLITE_BUSY)
		return 1;
	seen[0] = sessions();
	sqlite3_close_v2(db);
	seen[1] = sessions();
	sqlite3_step(first);
	sqlite3_finalize(first);
	seen[2] = sessions();
	sqlite3_finalize(second);
	seen[3] = sessions();
	printf("%d %d %d %d\n", seen[0], seen[1], seen[2], seen[3]);
	return 0;
}
