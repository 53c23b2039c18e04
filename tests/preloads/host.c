/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with threads and a forked child that run queries. It prints what they found, and which descriptors
 * it has at its end.
 *
 * usage: HOST [LIBRARY], which is then loaded as an extension
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define RUNS 6

static const char *library;

static long long run_queries(void)
{
	long long sum = 0;
	sqlite3_stmt *stmt;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		exit(90);
	if (library && (sqlite3_enable_load_extension(db, 1) ||
	                sqlite3_load_extension(db, library, "sqlite3_queryprof_init", NULL)))
		exit(91);
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
	run_child();
	print_descriptors();
	return 3;
}
