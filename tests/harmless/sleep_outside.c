/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread waits outside SQLite after a query. Timers of both kinds, of 1 ms, exist because of the query,
 * and must not disturb the wait. For each kind of wait, a query and 60 ms of waiting in steps of 20 ms
 * alternate. Prints how many steps ended early, and how many signals came after the queries.
 *
 *   sleep_outside LIBRARY
 */
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/must.h"

#define STEP_MS 20
#define STEPS 3
#define QUERIES 8

static const struct timespec step = { 0, STEP_MS * 1000000L };
static int pipe_fds[2], listener, epoll;
static sem_t semaphore;

static struct timespec step_from_now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += step.tv_nsec;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static void by_nanosleep(void)
{
	nanosleep(&step, NULL);
}

static void by_clock_nanosleep(void)
{
	struct timespec until = step_from_now(CLOCK_MONOTONIC);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void by_usleep(void)
{
	usleep(STEP_MS * 1000);
}

static void by_poll(void)
{
	struct pollfd fd = { .fd = pipe_fds[0], .events = POLLIN };

	poll(&fd, 1, STEP_MS);
}

static void by_ppoll(void)
{
	struct pollfd fd = { .fd = pipe_fds[0], .events = POLLIN };
	sigset_t none;

	sigemptyset(&none);
	ppoll(&fd, 1, &step, &none);
}

static void by_select(void)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ 0, STEP_MS * 1000 });
}

static void by_pselect(void)
{
	pselect(0, NULL, NULL, NULL, &step, NULL);
}

static void by_epoll_wait(void)
{
	struct epoll_event event;

	epoll_wait(epoll, &event, 1, STEP_MS);
}

static void by_sem_timedwait(void)
{
	struct timespec until = step_from_now(CLOCK_REALTIME);

	sem_timedwait(&semaphore, &until);
}

static void by_cond_timedwait(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec until = step_from_now(CLOCK_REALTIME);

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&condition, &mutex, &until);
	pthread_mutex_unlock(&mutex);
}

/* The next waits call the kernel directly or are not hooked, so one signal may come. */
static void by_futex(void)
{
	static uint32_t word;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &step, NULL, 0);
}

static void by_accept(void)
{
	int fd = accept(listener, NULL, NULL); /* SO_RCVTIMEO: STEP_MS */

	if (fd >= 0)
		close(fd);
}

static void *write_later(void *context)
{
	(void)context;
	nanosleep(&step, NULL);
	if (write(pipe_fds[1], "x", 1) != 1)
		abort();
	return NULL;
}

static int failed_reads;

static void by_read(void)
{
	pthread_t thread;
	char byte;

	pthread_create(&thread, NULL, write_later, NULL);
	failed_reads += read(pipe_fds[0], &byte, 1) != 1;
	pthread_join(thread, NULL);
}

static const struct {
	const char *name;
	void (*wait)(void);
	int early_allowed; /* per query */
} ways[] = {
	{ "nanosleep", by_nanosleep, 0 },
	{ "clock_nanosleep", by_clock_nanosleep, 0 },
	{ "usleep", by_usleep, 0 },
	{ "poll", by_poll, 0 },
	{ "ppoll", by_ppoll, 0 },
	{ "select", by_select, 0 },
	{ "pselect", by_pselect, 0 },
	{ "epoll_wait", by_epoll_wait, 0 },
	{ "sem_timedwait", by_sem_timedwait, 0 },
	{ "pthread_cond_timedwait", by_cond_timedwait, 0 },
	{ "futex", by_futex, 1 },
	{ "accept with a time limit", by_accept, 1 },
	{ "read", by_read, 0 },
};
#define WAYS (sizeof(ways) / sizeof(*ways))

static int read_number(void *context, int count, char **values, char **names)
{
	(void)names;
	*(long *)context = count && values[0] ? atol(values[0]) : 0;
	return 0;
}

/* Reads the metric on a connection that is not sampled. */
static long signals(sqlite3 *quiet)
{
	long value = 0;

	must(quiet,
	     sqlite3_exec(quiet, "SELECT value FROM system.metrics WHERE metric = 'query_profiler_runs'",
	                  read_number, &value, NULL),
	     "sqlite3_exec");
	return value;
}

struct result {
	sqlite3 *db, *quiet;
	size_t way;
	int early;
	long signals;
};

/* Runs on a thread of its own, because timers belong to a thread. */
static void *wait_after_queries(void *context)
{
	struct result *result = context;

	for (int query = 0; query < QUERIES; query++) {
		long before;

		must(result->db,
		     sqlite3_exec(result->db,
		                  "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
		                  "WHERE x < 30000) SELECT sum(x) FROM c",
		                  NULL, NULL, NULL),
		     "sqlite3_exec");
		before = signals(result->quiet);
		for (int i = 0; i < STEPS; i++) {
			struct timespec start, end;

			clock_gettime(CLOCK_MONOTONIC, &start);
			ways[result->way].wait();
			clock_gettime(CLOCK_MONOTONIC, &end);
			/* 1 ms less, because some waits count ticks of another clock */
			if ((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec <
			    step.tv_nsec - 1000000)
				result->early++;
		}
		result->signals += signals(result->quiet) - before;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timeval limit = { 0, STEP_MS * 1000 };
	struct result results[WAYS] = { 0 };
	sqlite3 *db, *quiet;
	char *error = NULL;
	int bad = 0;

	if (argc < 2 || pipe(pipe_fds) || (listener = socket(AF_INET, SOCK_STREAM, 0)) < 0 ||
	    listen(listener, 1) || setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    (epoll = epoll_create1(0)) < 0)
		return 2;
	sem_init(&semaphore, 0, 0);
	must(NULL, sqlite3_open(":memory:", &db), "sqlite3_open");
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
	if (sqlite3_load_extension(db, argv[1], "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	must(NULL, sqlite3_open(":memory:", &quiet), "sqlite3_open");
	must(quiet,
	     sqlite3_exec(quiet, "PRAGMA system.query_profiler_cpu_time_period_ns = 0", NULL, NULL, NULL),
	     "sqlite3_exec");
	must(db,
	     sqlite3_exec(db,
	                  "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	                  "PRAGMA query_profiler_real_time_period_ns = 1000000",
	                  NULL, NULL, NULL),
	     "sqlite3_exec");
	for (size_t way = 0; way < WAYS; way++) {
		struct result *result = &results[way];
		long before = signals(quiet);
		pthread_t thread;

		*result = (struct result){ .db = db, .quiet = quiet, .way = way };
		pthread_create(&thread, NULL, wait_after_queries, result);
		pthread_join(thread, NULL);
		printf("%-26s %d queries, %d waits: %d ended early; %ld signals after the queries, %ld in "
		       "all\n",
		       ways[way].name, QUERIES, QUERIES * STEPS, result->early, result->signals,
		       signals(quiet) - before);
		/* At most one signal per thread, query and kind of timer, and seldom. The CPU timer's
		 * signal may arrive just as the thread begins to wait. */
		if (result->early > 1 + QUERIES * ways[way].early_allowed || result->signals > 2 * QUERIES ||
		    signals(quiet) == before)
			bad = 1;
	}
	sqlite3_close(quiet);
	sqlite3_close(db);
	if (failed_reads)
		printf("%d reads failed\n", failed_reads);
	return bad || failed_reads;
}
