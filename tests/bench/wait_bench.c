/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a hooked call that does not wait, outside and inside of a query. The process has a second
 * thread, because libc's mutexes are cheaper without one. Each short round of hooked calls alternates with a
 * round of libc's own functions, whose addresses the program read before queryprof was loaded.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"

#define CALLS 1000
#define ROUNDS 601
#define CLOCK_NS 1.2e9

static int zero_file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct functions {
	ssize_t (*pread)(int, void *, size_t, off_t);
	ssize_t (*pwrite)(int, const void *, size_t, off_t);
	int (*close)(int);
	int (*pthread_mutex_lock)(pthread_mutex_t *);
	long (*syscall)(long, ...);
} libc, hooked; /* the second is this program's import table, as it is in queries */

static void read_nothing(const struct functions *with)
{
	char byte;

	if (with->pread(zero_file, &byte, 0, 0))
		perror("pread");
}

static void write_nothing(const struct functions *with)
{
	if (with->pwrite(zero_file, "", 0, 0))
		perror("pwrite");
}

static void close_nothing(const struct functions *with)
{
	with->close(-1);
}

static void lock_free_mutex(const struct functions *with)
{
	with->pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void call_kernel(const struct functions *with)
{
	with->syscall(SYS_getppid);
}

static const struct {
	const char *name;
	void (*call)(const struct functions *with);
} calls[] = {
	{ "pread of 0 bytes", read_nothing },
	{ "pwrite of 0 bytes", write_nothing },
	{ "close(-1)", close_nothing },
	{ "mutex, uncontended", lock_free_mutex },
	{ "empty system call, not hooked", call_kernel },
};
#define KINDS (sizeof(calls) / sizeof(*calls))

static double round_of(size_t kind, const struct functions *with)
{
	double start = (double)now_ns();

	for (int i = 0; i < CALLS; i++)
		calls[kind].call(with);
	return ((double)now_ns() - start) / CALLS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct figure {
	double without, added; /* medians */
};

static struct figure measure(size_t kind)
{
	static double without[ROUNDS], added[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double first = round_of(kind, i % 2 ? &libc : &hooked);
		double second = round_of(kind, i % 2 ? &hooked : &libc);

		without[i] = i % 2 ? first : second;
		added[i] = i % 2 ? second - first : first - second;
	}
	qsort(without, ROUNDS, sizeof(*without), compare);
	qsort(added, ROUNDS, sizeof(*added), compare);
	return (struct figure){ without[ROUNDS / 2], added[ROUNDS / 2] };
}

static struct figure inside;

static void measure_in_query(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)context, (void)count;
	inside = measure((size_t)sqlite3_value_int(values[0]));
}

static int ask(sqlite3 *db, size_t kind)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, "SELECT measure(?)", -1, &statement, NULL))
		return SQLITE_ERROR;
	sqlite3_bind_int(statement, 1, (int)kind);
	sqlite3_step(statement);
	return sqlite3_finalize(statement);
}

static void *rest(void *unused)
{
	pause();
	return unused;
}

int main(void)
{
	char *error = NULL;
	pthread_t thread;
	sqlite3 *db;

	zero_file = open("/dev/zero", O_RDWR);
	*(void **)&libc.pread = dlsym(RTLD_DEFAULT, "pread");
	*(void **)&libc.pwrite = dlsym(RTLD_DEFAULT, "pwrite");
	*(void **)&libc.close = dlsym(RTLD_DEFAULT, "close");
	*(void **)&libc.pthread_mutex_lock = dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
	*(void **)&libc.syscall = dlsym(RTLD_DEFAULT, "syscall");
	pthread_create(&thread, NULL, rest, NULL);
	if (sqlite3_open(":memory:", &db) || sqlite3_enable_load_extension(db, 1) ||
	    sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error) ||
	    sqlite3_exec(db, "PRAGMA query_profiler_off_cpu_period_ns = '1ms'", NULL, NULL, &error) ||
	    sqlite3_create_function(db, "measure", 1, SQLITE_UTF8, NULL, measure_in_query, NULL, NULL)) {
		fprintf(stderr, "%s\n", error ? error : sqlite3_errmsg(db));
		return 1;
	}
	hooked = (struct functions){ pread, pwrite, close, pthread_mutex_lock, syscall };
	/* These queries last until the library has measured its clock for waits. */
	for (double start = (double)now_ns(); (double)now_ns() - start < CLOCK_NS;)
		if (ask(db, KINDS - 1))
			return 1;
	printf("a call, ns: libc's; added outside queries, inside one; ratio inside\n");
	for (size_t i = 0; i < KINDS; i++) {
		struct figure outside = measure(i);

		if (ask(db, i)) {
			fprintf(stderr, "%s\n", sqlite3_errmsg(db));
			return 1;
		}
		printf("  %-30s %7.1f %+6.1f %+6.1f   %.2f\n", calls[i].name, outside.without, outside.added,
		       inside.added, 1 + inside.added / inside.without);
	}
	sqlite3_close(db);
	return 0;
}
