/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs statements whose functions allocate known numbers of bytes through SQLite. Each argument is a
 * statement, which may begin with where it runs: "threads:" on 8 threads at once, each with a connection of
 * its own, "child:" in a forked child. Other arguments are no statements: "free:" frees all kept blocks in a
 * thread that runs no query, "lines:" runs each line of the standard input as a statement, and "owner:", the
 * last, prints the file of the function that allocates for SQLite. After each statement and argument, the
 * bytes that SQLite has by its own counter are printed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_MAX 1000000
#define THREADS 8

static void *kept[KEPT_MAX];
static int kept_count;

static void check(int rc)
{
	if (rc != SQLITE_OK)
		abort();
}

/* allocate(size, count), and grow(size, count), which first allocates half of it. */
static void allocate(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const sqlite3_uint64 size = (sqlite3_uint64)sqlite3_value_int64(argv[0]);
	const int count = sqlite3_value_int(argv[1]), *grows = sqlite3_user_data(context);

	(void)argc;
	for (int i = 0; i < count; i++) {
		void *block = sqlite3_malloc64(*grows ? size / 2 : size);

		if (*grows)
			block = sqlite3_realloc64(block, size);
		sqlite3_free(block);
	}
}

/* keep(size, count) */
static void keep(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)context;
	(void)argc;
	for (int i = sqlite3_value_int(argv[1]); i > 0; i--)
		kept[kept_count++] = sqlite3_malloc64((sqlite3_uint64)sqlite3_value_int64(argv[0]));
}

/* drop(count) */
static void drop(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)context;
	(void)argc;
	for (int i = sqlite3_value_int(argv[0]); i > 0; i--)
		sqlite3_free(kept[--kept_count]);
}

static sqlite3 *open_database(void)
{
	static int no = 0, yes = 1;
	sqlite3 *db;

	check(sqlite3_open(":memory:", &db));
	check(sqlite3_create_function(db, "allocate", 2, SQLITE_UTF8, &no, allocate, NULL, NULL));
	check(sqlite3_create_function(db, "grow", 2, SQLITE_UTF8, &yes, allocate, NULL, NULL));
	check(sqlite3_create_function(db, "keep", 2, SQLITE_UTF8, NULL, keep, NULL, NULL));
	check(sqlite3_create_function(db, "drop_kept", 1, SQLITE_UTF8, NULL, drop, NULL, NULL));
	return db;
}

static void run(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	check(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
	while (sqlite3_step(stmt) == SQLITE_ROW)
		;
	sqlite3_finalize(stmt); /* its result is that of the statement, which may have no memory */
}

static void *run_in_thread(void *sql)
{
	sqlite3 *db = open_database();

	run(db, sql);
	sqlite3_close(db);
	return NULL;
}

static void *free_in_thread(void *nothing)
{
	while (kept_count > 0)
		sqlite3_free(kept[--kept_count]);
	return nothing;
}

static void run_in_threads(int count, void *(*start)(void *), char *argument)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < count; i++)
		check(pthread_create(&threads[i], NULL, start, argument));
	for (int i = 0; i < count; i++)
		check(pthread_join(threads[i], NULL));
}

static void print_used(void)
{
	printf("%lld\n", (long long)sqlite3_memory_used());
	fflush(stdout);
}

/* Each line arrives alone. The thread waits in a system call, where `attach` may stop it. */
static void run_lines(sqlite3 *db)
{
	char line[1000];
	ssize_t size;

	while ((size = read(0, line, sizeof(line) - 1)) > 0) {
		line[size] = '\0';
		run(db, line);
		print_used();
	}
}

/* SQLite does not tell its methods while it is initialised. */
static void print_owner(sqlite3 *db)
{
	sqlite3_mem_methods methods;
	Dl_info info;

	check(sqlite3_close(db));
	check(sqlite3_shutdown());
	check(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &methods));
	check(!dladdr(*(void **)&methods.xMalloc, &info));
	puts(info.dli_fname);
}

static void run_in_child(sqlite3 *db, const char *sql)
{
	pid_t child = fork();

	if (child == 0) {
		run(db, sql);
		exit(0);
	}
	check(waitpid(child, NULL, 0) != child);
}

int main(int argc, char **argv)
{
	sqlite3 *db = open_database();

	run(db, "SELECT 1"); /* the profiler follows the library from here on */
	print_used();
	for (int i = 1; i < argc; i++) {
		char *colon = strchr(argv[i], ':');

		if (!strncmp(argv[i], "threads:", 8))
			run_in_threads(THREADS, run_in_thread, colon + 1);
		else if (!strncmp(argv[i], "free:", 5))
			run_in_threads(1, free_in_thread, NULL);
		else if (!strncmp(argv[i], "child:", 6))
			run_in_child(db, colon + 1);
		else if (!strcmp(argv[i], "lines:"))
			run_lines(db);
		else if (!strcmp(argv[i], "owner:"))
			print_owner(db);
		else
			run(db, argv[i]);
		print_used();
	}
	return 0;
}
