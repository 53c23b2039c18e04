/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that reads the rows of one query. Each row takes some ms of computing, and the program sleeps
 * between two rows. It prints in ns, measured around sqlite3_prepare_v2() and each sqlite3_step(): the time
 * inside these calls, their CPU time, and the duration of the preparation plus the time from the first step's
 * beginning to the last step's end.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

#include "../lib/clock.h"

int main(void)
{
	static const char sql[] =
		"WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 100)"
		" SELECT (WITH RECURSIVE c(x) AS (SELECT i UNION ALL SELECT x + 1 FROM c WHERE x < i + 8000)"
		" SELECT sum(x) FROM c) FROM r";
	const struct timespec pause = { .tv_nsec = 1000000 };
	long long inside = 0, cpu_inside = 0, first, start, cpu, last;
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;
	int result;

	/* The first statement pays for queryprof's inspection of SQLite, once a process. */
	if (sqlite3_open(":memory:", &db) || sqlite3_exec(db, "SELECT 0", NULL, NULL, NULL))
		return 1;
	cpu = (long long)clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	first = start = (long long)clock_read_ns(CLOCK_MONOTONIC);
	result = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	for (;;) {
		last = (long long)clock_read_ns(CLOCK_MONOTONIC);
		cpu_inside += (long long)clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		inside += last - start;
		if (result == SQLITE_ROW)
			nanosleep(&pause, NULL);
		else if (result != SQLITE_OK)
			break;
		cpu = (long long)clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
		start = (long long)clock_read_ns(CLOCK_MONOTONIC);
		/* A statement does not run between its preparation and its first step. */
		if (result == SQLITE_OK)
			first += start - last;
		result = sqlite3_step(stmt);
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	printf("%lld %lld %lld\n", inside, cpu_inside, last - first);
	return result != SQLITE_DONE;
}
