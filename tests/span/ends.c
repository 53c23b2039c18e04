/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that ends while its threads are inside traces: ends kill | exec | exit | fork (a child that is
 * killed).
 */
#include <pthread.h>
#include <queryprof.h>
#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define MANY 2500 /* more than a thread's array holds */

static sem_t inside;

/* The preparation takes longer than the whole trace, and is not part of it. */
static int prepare_slowly(void *unused, int action, const char *a, const char *b, const char *c,
                          const char *d)
{
	(void)unused, (void)action, (void)a, (void)b, (void)c, (void)d;
	usleep(50000);
	return SQLITE_OK;
}

/* Records an open root, ended spans in it, an ended statement, and an open span. */
static void *record(void *unused)
{
	static qp_span_site outer = QP_SPAN_SITE("outer"), inner = QP_SPAN_SITE("inner"),
			    last = QP_SPAN_SITE("last");
	sqlite3_stmt *stmt;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) || sqlite3_set_authorizer(db, prepare_slowly, NULL) ||
	    sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL))
		_exit(3);
	if (qp_trace_begin(NULL)) {
		fprintf(stderr, "%s\n", qp_error());
		_exit(3);
	}
	qp_span_begin(&outer);
	for (int i = 0; i < MANY; i++)
		qp_span_end(qp_span_begin(&inner));
	sqlite3_step(stmt);
	sqlite3_reset(stmt);
	qp_span_begin(&last);
	sem_post(&inside);
	pause();
	return unused;
}

static qp_span begin_child(void)
{
	static qp_span_site site = QP_SPAN_SITE("child");

	if (qp_trace_begin(NULL))
		_exit(3);
	return qp_span_begin(&site);
}

/* The child's site inherits its number from the parent. */
static void fork_killed_child(void)
{
	pid_t child;

	qp_span_end(begin_child());
	qp_trace_end();
	child = fork();
	if (!child) {
		begin_child();
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	sqlite3 *db;

	if (argc != 2 || sqlite3_open(":memory:", &db) || sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL))
		return 2;
	sem_init(&inside, 0, 0);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, record, NULL))
			return 2;
	for (int i = 0; i < THREADS; i++)
		while (sem_wait(&inside))
			;
	if (!strcmp(argv[1], "kill"))
		kill(getpid(), SIGKILL);
	else if (!strcmp(argv[1], "fork"))
		fork_killed_child();
	else if (!strcmp(argv[1], "exec"))
		execl("/bin/true", "true", NULL);
	return 0;
}
