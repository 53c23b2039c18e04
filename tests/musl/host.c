/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses musl: FILE SQL [THREADS] runs the SQL in that many threads, each with its own
 * connection, and prints the result. SQL has the functions nap(MS), which returns 1 if a signal ended its
 * sleep, finish(HOW), which ends the process, and deeper(MS), which uses CPU time 2 MB further down on the
 * stack.
 *
 * It is compiled in four ways: with a shared SQLite, with SQLite inside, and as a library that main() of
 * late.c loads, also with a constructor that runs a query in a thread and waits for it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 8

static const char *file, *sql;

static void nap(sqlite3_context *context, int count, sqlite3_value **values)
{
	const int ms = sqlite3_value_int(values[0]);
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	(void)count;
	sqlite3_result_int(context, nanosleep(&time, NULL) && errno == EINTR);
}

static void finish(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)context, (void)count;
	if (!strcmp((const char *)sqlite3_value_text(values[0]), "_exit"))
		_exit(7);
	kill(getpid(), SIGKILL);
}

static __attribute__((noinline)) int spin(long ms)
{
	const clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);
	volatile char room[2 << 20];

	for (size_t i = 0; i < sizeof(room); i += 1024)
		room[sizeof(room) - 1 - i] = 1;
	while (clock() < end)
		room[0]++;
	return room[sizeof(room) - 1];
}

static void deeper(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sqlite3_result_int(context, spin(sqlite3_value_int(values[0])));
}

static int print_row(void *unused, int count, char **values, char **names)
{
	(void)unused, (void)names;
	for (int i = 0; i < count; i++)
		printf("%s%c", values[i] ? values[i] : "", i + 1 < count ? '|' : '\n');
	fflush(stdout);
	return 0;
}

static void *run(void *unused)
{
	char *error = NULL;
	sqlite3 *db;

	(void)unused;
	if (sqlite3_open(file, &db) || sqlite3_busy_timeout(db, 60000) ||
	    sqlite3_create_function(db, "nap", 1, SQLITE_UTF8, NULL, nap, NULL, NULL) ||
	    sqlite3_create_function(db, "finish", 1, SQLITE_UTF8, NULL, finish, NULL, NULL) ||
	    sqlite3_create_function(db, "deeper", 1, SQLITE_UTF8, NULL, deeper, NULL, NULL) ||
	    sqlite3_exec(db, sql, print_row, NULL, &error)) {
		fprintf(stderr, "%s\n", error ? error : sqlite3_errmsg(db));
		exit(1);
	}
	sqlite3_close(db);
	return NULL;
}

int host_main(int count, char **arguments);

int host_main(int count, char **arguments)
{
	const int threads = count > 3 ? atoi(arguments[3]) : 1;
	pthread_t ids[THREADS_MAX];

	file = arguments[1];
	sql = arguments[2];
	for (int i = 1; i < threads && i < THREADS_MAX; i++)
		if (pthread_create(&ids[i], NULL, run, NULL))
			return 2;
	run(NULL);
	for (int i = 1; i < threads && i < THREADS_MAX; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

#if defined(IN_CONSTRUCTOR)
static __attribute__((constructor)) void run_first_query(void)
{
	pthread_t id;

	file = ":memory:";
	sql = "SELECT nap(1)";
	if (pthread_create(&id, NULL, run, NULL) == 0)
		pthread_join(id, NULL);
}
#endif

#if !defined(AS_LIBRARY)
int main(int count, char **arguments)
{
	return host_main(count, arguments);
}
#endif
