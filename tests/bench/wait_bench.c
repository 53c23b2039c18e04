/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hooked call costs that does not wait: without queryprof, with it outside of queries,
 * and inside of one. In one process, with a second thread: without one libc has a mutex cheaper.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLS 3000
#define ROUNDS 100

static int zero_file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void read_nothing(void)
{
	char byte;

	if (pread(zero_file, &byte, 0, 0))
		perror("pread");
}

static void close_nothing(void)
{
	close(-1);
}

static void lock_free_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void call_kernel(void)
{
	syscall(SYS_getppid);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "pread of 0 bytes", read_nothing },
	{ "close(-1)", close_nothing },
	{ "mutex, uncontended", lock_free_mutex },
	{ "empty system call, not hooked", call_kernel },
};
#define KINDS (sizeof calls / sizeof *calls)

/* The least of many short rounds: nothing came in between. */
static double measure(size_t kind)
{
	double least = 1e12;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec start, end;

		clock_gettime(CLOCK_MONOTONIC, &start);
		for (int i = 0; i < CALLS; i++)
			calls[kind].call();
		clock_gettime(CLOCK_MONOTONIC, &end);
		double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
		if (ns / CALLS < least)
			least = ns / CALLS;
	}
	return least;
}

static void measure_in_query(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sqlite3_result_double(context, measure((size_t)sqlite3_value_int(values[0])));
}

static double inside(sqlite3 *db, size_t kind)
{
	sqlite3_stmt *statement;
	double ns = 0;

	if (!sqlite3_prepare_v2(db, "SELECT measure(?)", -1, &statement, NULL)) {
		sqlite3_bind_int(statement, 1, (int)kind);
		if (sqlite3_step(statement) == SQLITE_ROW)
			ns = sqlite3_column_double(statement, 0);
	}
	sqlite3_finalize(statement);
	return ns;
}

static void *rest(void *unused)
{
	pause();
	return unused;
}

int main(void)
{
	double without[KINDS];
	char *error = NULL;
	pthread_t thread;
	sqlite3 *db;

	zero_file = open("/dev/zero", O_RDONLY);
	pthread_create(&thread, NULL, rest, NULL);
	for (size_t i = 0; i < KINDS; i++)
		without[i] = measure(i);
	if (sqlite3_open(":memory:", &db) || sqlite3_enable_load_extension(db, 1) ||
	    sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error) ||
	    sqlite3_exec(db, "PRAGMA query_profiler_off_cpu_period_ns = '1ms'", NULL, NULL, &error) ||
	    sqlite3_create_function(db, "measure", 1, SQLITE_UTF8, NULL, measure_in_query, NULL, NULL)) {
		fprintf(stderr, "%s\n", error ? error : sqlite3_errmsg(db));
		return 1;
	}
	printf("a call, ns: without queryprof, outside queries, inside one; added; ratio\n");
	for (size_t i = 0; i < KINDS; i++) {
		double outside = measure(i), in = inside(db, i);

		printf("  %-30s %7.1f %7.1f %7.1f   %+6.1f %+6.1f   %.2f %.2f\n", calls[i].name, without[i],
		       outside, in, outside - without[i], in - without[i], outside / without[i],
		       in / without[i]);
	}
	sqlite3_close(db);
	return 0;
}
