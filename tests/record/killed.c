/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that run numbered queries until the test kills them, or end without notice.
 *
 * usage: killed LIBRARY LEDGER THREADS WAY [COUNT]
 *
 * LEDGER is a file with two numbers for each thread of each process: the number of ended queries, and the
 * running query's number times 2^SAMPLES_BITS, plus its samples in queryprof's counters. The file survives
 * the process, as the queries and samples must. The query's text contains the numbers of the process, the
 * thread and the query.
 *
 *   WAY        the process
 *   run        runs queries forever, itself
 *   count      the same with one short statement a thread, prepared once
 *   workers    makes COUNT processes that run queries, and ends when all of them have ended; a signal
 *              must end each
 *   leave      runs COUNT queries of some 30 ms, and ends by the bare system call
 *   close      as leave, after closing all descriptors and taking their numbers
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 8
#define PROCESSES_MAX 64
#define LONG_STEPS 100000 /* a query so long that a signal interrupts it, and that has samples */

#define SAMPLES_BITS 24

struct account {
	atomic_long ended, running;
};

static struct account (*ledger)[THREADS_MAX];
static const char *library;
static int threads, place;

static void run_query(sqlite3 *db, int thread, long number, int steps)
{
	char sql[200];

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d)"
	         " SELECT sum(x) AS q_%d_%d_%ld FROM c",
	         steps, place, thread, number);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		_exit(3);
}

static void *run_on(void *context)
{
	int thread = (int)(long)context;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		_exit(3);
	for (long number = 0;; number++) {
		run_query(db, thread, number, number % 8 ? 2000 + (int)(number % 7) * 1000 : LONG_STEPS);
		atomic_fetch_add(&ledger[place][thread].ended, 1);
	}
	return NULL;
}

static void *count_on(void *context)
{
	int thread = (int)(long)context;
	sqlite3_stmt *stmt;
	char sql[64];
	sqlite3 *db;

	snprintf(sql, sizeof(sql), "SELECT ? AS q_0_%d_", thread);
	if (sqlite3_open(":memory:", &db) || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		_exit(3);
	for (;;) {
		if (sqlite3_step(stmt) != SQLITE_ROW || sqlite3_reset(stmt))
			_exit(3);
		atomic_fetch_add(&ledger[place][thread].ended, 1);
	}
	return NULL;
}

/* Asks queryprof which queries of the process run and how many samples they have. */
static void *watch(void *context)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) || sqlite3_enable_load_extension(db, 1) ||
	    sqlite3_load_extension(db, library, "sqlite3_queryprof_init", NULL) ||
	    sqlite3_prepare_v2(db, "SELECT query, samples_cpu + samples_real FROM system.processes", -1,
	                       &stmt, NULL))
		_exit(3);
	for (;;) {
		while (sqlite3_step(stmt) == SQLITE_ROW) {
			const char *text = (const char *)sqlite3_column_text(stmt, 0);
			const char *name = text ? strstr(text, " q_") : NULL;
			int of, thread;
			long number;
			if (name && sscanf(name, " q_%d_%d_%ld", &of, &thread, &number) == 3 && of == place)
				atomic_store(&ledger[place][thread].running,
				             number << SAMPLES_BITS | sqlite3_column_int(stmt, 1));
		}
		sqlite3_reset(stmt);
		sqlite3_sleep(1);
	}
	return context;
}

static void run_for_ever(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, watch, NULL);
	for (long i = 1; i < threads; i++)
		pthread_create(&thread, NULL, run_on, (void *)i);
	run_on(NULL);
}

static void count_for_ever(void)
{
	pthread_t thread;

	for (long i = 1; i < threads; i++)
		pthread_create(&thread, NULL, count_on, (void *)i);
	count_on(NULL);
}

/* Worker processes as in a server: forked by a parent that has used SQLite itself. */
static int run_workers(int count)
{
	sqlite3 *db;
	int bad = 0, status;

	if (sqlite3_open(":memory:", &db))
		return 3;
	run_query(db, 0, 0, 1000);
	sqlite3_close(db);
	for (int i = 1; i <= count; i++) {
		pid_t worker = fork();

		place = i;
		if (worker < 0)
			return 3;
		if (!worker)
			run_for_ever();
		printf("%d\n", (int)worker);
		fflush(stdout);
	}
	place = 0;
	for (int i = 0; i < count; i++) {
		wait(&status);
		bad |= !WIFSIGNALED(status);
	}
	return bad;
}

static void leave(int count)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		_exit(3);
	for (int number = 0; number < count; number++)
		run_query(db, 0, number, 150000);
	atomic_fetch_add(&ledger[0][0].ended, count);
	syscall(SYS_exit_group, 0);
}

static void take_descriptors(void)
{
	for (int fd = 3; fd < 100; fd++) {
		close(fd);
		if (open("/dev/null", O_RDWR) < 0)
			_exit(3);
	}
}

int main(int argc, char **argv)
{
	const size_t size = sizeof(*ledger) * PROCESSES_MAX;
	int fd = argc > 4 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
	int count = argc > 5 ? atoi(argv[5]) : 0;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return 3;
	ledger = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger == MAP_FAILED)
		return 3;
	library = argv[1];
	threads = atoi(argv[3]);
	if (!strcmp(argv[4], "run"))
		run_for_ever();
	if (!strcmp(argv[4], "count"))
		count_for_ever();
	if (!strcmp(argv[4], "workers"))
		return run_workers(count);
	if (!strcmp(argv[4], "close"))
		take_descriptors();
	leave(count);
	return 3;
}
