/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with threads and a forked child that run queries. One thread waits in its query for another thread,
 * which holds a mutex or fills a pipe. The host prints the queries' results, and the descriptors that are
 * open at its end.
 *
 * usage: HOST [LIBRARY], which is then loaded as an extension
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define RUNS 6

static const char *library;

static sqlite3 *open_database(void)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		exit(90);
	if (library && (sqlite3_enable_load_extension(db, 1) ||
	                sqlite3_load_extension(db, library, "sqlite3_queryprof_init", NULL)))
		exit(91);
	return db;
}

static long long run_queries(void)
{
	sqlite3 *db = open_database();
	long long sum = 0;
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(
		    db,
		    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 8000) "
		    "SELECT sum(x) FROM c",
		    -1, &stmt, NULL))
		exit(92);
	for (int i = 0; i < RUNS; i++) {
		struct timespec now;

		if (sqlite3_step(stmt) != SQLITE_ROW)
			exit(93);
		sum += sqlite3_column_int64(stmt, 0);
		sqlite3_reset(stmt);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return sum;
}

static void *run_in_thread(void *sum)
{
	*(long long *)sum = run_queries();
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];
	long long sums[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_in_thread, &sums[i]))
			exit(94);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		printf("thread %d: %lld\n", i, sums[i]);
	}
}

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static pid_t waiter; /* atomic */

static void wait_for_other(sqlite3_context *context, int count, sqlite3_value **values)
{
	char byte = 0;

	(void)count;
	(void)values;
	__atomic_store_n(&waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	pthread_mutex_lock(&outer);
	pthread_mutex_unlock(&outer);
	__atomic_store_n(&waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (read(ends[0], &byte, 1) != 1)
		byte = 0;
	sqlite3_result_int(context, byte);
}

static void *run_waiting(void *unused)
{
	sqlite3 *db = open_database();

	if (sqlite3_create_function(db, "wait_for_other", 0, SQLITE_UTF8, NULL, wait_for_other, NULL, NULL) ||
	    sqlite3_exec(db, "SELECT wait_for_other()", NULL, NULL, NULL))
		exit(95);
	sqlite3_close(db);
	return unused;
}

static void wait_until_it_sleeps(void)
{
	char path[64], state = 0;
	pid_t thread;
	FILE *file;

	while (!(thread = __atomic_exchange_n(&waiter, 0, __ATOMIC_ACQ_REL)))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	while (state != 'S' && (file = fopen(path, "r"))) {
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 'S';
		fclose(file);
	}
}

/* While the other thread waits, this one uses each lock that a preload may have. */
static void keep_waiting(void)
{
	pthread_t thread;

	if (pipe(ends))
		exit(97);
	pthread_mutex_lock(&outer);
	if (pthread_create(&thread, NULL, run_waiting, NULL))
		exit(94);
	wait_until_it_sleeps();
	pthread_mutex_lock(&inner);
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&outer);
	wait_until_it_sleeps();
	free(malloc(1));
	if (write(ends[1], "x", 1) != 1)
		exit(96);
	pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
	printf("waited\n");
}

static void run_child(void)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		if (getenv("PRELOADS_CHILD"))
			library = NULL;
		printf("child: %lld\n", run_queries());
		fflush(stdout);
		if (getenv("PRELOADS_CHILD"))
			_exit(5);
		exit(5);
	}
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		printf("child's status %d\n", WEXITSTATUS(status));
}

static void print_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int own = folder ? dirfd(folder) : -1;

	printf("descriptors");
	while (folder && (entry = readdir(folder)))
		if (*entry->d_name != '.' && atoi(entry->d_name) != own)
			printf(" %s", entry->d_name);
	printf("\n");
	closedir(folder);
}

int main(int argc, char **argv)
{
	library = argc > 1 ? argv[1] : NULL;
	printf("begins\n");
	open("/preloads/begin", O_RDONLY);
	printf("first: %lld\n", run_queries());
	run_child();
	run_threads();
	keep_waiting();
	run_child();
	print_descriptors();
	return 3;
}
