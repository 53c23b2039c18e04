/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that become other programs right after a query, by each kind of exec. Half of them block all
 * signals within the query. The new program, which is this one again, unblocks them. Prints the number of
 * killed processes.
 *
 * usage: executor [LIBQUERYPROF], which is then loaded as an extension, with a period shorter than an exec
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void block(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sigset_t all;

	(void)argc;
	sigfillset(&all);
	if (sqlite3_value_int(argv[0]))
		sigprocmask(SIG_BLOCK, &all, NULL);
	sqlite3_result_int(context, 1);
}

static void run_query(const char *library, bool blocked)
{
	const char *format = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000)"
			     " SELECT sum(x), block(%d) FROM c WHERE x < 10000 OR block(%d)";
	char *sql = sqlite3_mprintf(format, blocked, blocked);
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_create_function(db, "block", 1, SQLITE_UTF8, NULL, block, NULL, NULL))
		_exit(1);
	if (library &&
	    (sqlite3_enable_load_extension(db, 1) || sqlite3_load_extension(db, library, NULL, NULL) ||
	     sqlite3_exec(db, "PRAGMA query_profiler_real_time_period_ns = 200000", NULL, NULL, NULL)))
		_exit(1);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		_exit(1);
}

static void become_another(char *self, int way)
{
	char again[] = "again", *const arguments[] = { self, again, NULL };

	switch (way % 4) {
	case 0: execv(self, arguments); break;
	case 1: execve(self, arguments, environ); break;
	case 2: execl(self, self, again, (char *)NULL); break;
	case 3: execlp(self, self, again, (char *)NULL); break;
	}
	_exit(2);
}

int main(int argc, char **argv)
{
	int killed = 0;
	sigset_t all;

	sigfillset(&all);
	if (argc > 1 && !strcmp(argv[1], "again")) {
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		return 0;
	}
	for (int i = 0; i < 24; i++) {
		pid_t child = fork();
		int status = 0;

		if (!child) {
			run_query(argv[1], i & 4);
			become_another(argv[0], i);
		}
		waitpid(child, &status, 0);
		if (WIFSIGNALED(status))
			killed++;
		else if (status)
			return 1;
	}
	printf("%d of 24 killed\n", killed);
	return 0;
}
