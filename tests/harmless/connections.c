/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections open and close, with queries that are sampled: 10,000 one after another, 1,000 at the same
 * time, and several threads that each open and close their own. Afterwards memory, descriptors, timers and
 * the library's records of connections and queries are as before.
 *
 *   connections LIBRARY
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/must.h"

#define IN_TURN 10000
#define AT_ONCE 1000
#define THREADS 8
#define PER_THREAD 100
#define THREAD_ROUNDS 4
#define STACKS_BYTES 262144

static char path[64] = "/tmp/queryprof-connections-XXXXXX";

static sqlite3 *open_one(void)
{
	sqlite3 *db;

	must(NULL, sqlite3_open(path, &db), "sqlite3_open");
	return db;
}

/* Every tenth connection names a table of queryprof, and so gets its schema. */
static void use(sqlite3 *db, int number)
{
	must_exec(db, "SELECT count(*) FROM t");
	if (number % 10 == 0)
		must_exec(db, "SELECT name FROM system.settings");
}

static int read_number(void *context, int count, char **values, char **names)
{
	(void)names;
	*(long *)context = count && values[0] ? atol(values[0]) : 0;
	return 0;
}

static sqlite3 *watcher;

static long metric(const char *name)
{
	long value = -1;
	char *sql = sqlite3_mprintf("SELECT value FROM system.metrics WHERE metric = %Q", name);

	must(watcher, sqlite3_exec(watcher, sql, read_number, &value, NULL), "sqlite3_exec");
	sqlite3_free(sql);
	return value;
}

static int entries(const char *folder)
{
	DIR *directory = opendir(folder);
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

struct state {
	long bytes; /* allocated by malloc() */
	int fds, os_threads;
	long sessions, timers, threads, refused, stored;
};

static struct state look(void)
{
	struct mallinfo2 info = mallinfo2();

	return (struct state){
		.bytes = (long)(info.uordblks + info.hblkhd),
		.fds = entries("/proc/self/fd"),
		.os_threads = entries("/proc/self/task"),
		.sessions = metric("sessions"),
		.timers = metric("timers"),
		.threads = metric("threads"),
		.refused = metric("sessions_refused"),
		.stored = metric("store_bytes"),
	};
}

static void show(const char *when, const struct state *state)
{
	printf("%-28s %8ld bytes, %d descriptors, %d threads; sessions %ld, timers %ld, threads %ld, refused "
	       "%ld, stored %ld\n",
	       when, state->bytes, state->fds, state->os_threads, state->sessions, state->timers,
	       state->threads, state->refused, state->stored);
}

static void *open_and_close(void *context)
{
	(void)context;
	for (int i = 0; i < PER_THREAD; i++) {
		sqlite3 *db = open_one();

		use(db, i);
		must(db, sqlite3_close(db), "sqlite3_close");
	}
	return NULL;
}

static void in_turn(void)
{
	for (int i = 0; i < IN_TURN; i++) {
		sqlite3 *db = open_one();

		use(db, i);
		must(db, sqlite3_close(db), "sqlite3_close");
	}
}

static void at_once(void)
{
	static sqlite3 *all[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		use(all[i] = open_one(), i);
	printf("sessions with %d open at once: %ld\n", AT_ONCE, metric("sessions"));
	if (metric("sessions") < AT_ONCE)
		exit(1);
	for (int i = 0; i < AT_ONCE; i++)
		must(all[i], sqlite3_close(all[i]), "sqlite3_close");
}

static void in_threads(void)
{
	pthread_t threads[THREADS];

	for (int round = 0; round < THREAD_ROUNDS; round++) {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, open_and_close, NULL);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
}

/* A joined thread stays in /proc for a moment. */
static struct state look_without_joined(int most_threads)
{
	struct state state = look();

	for (int wait = 0; state.os_threads > most_threads && wait < 1000; wait++) {
		usleep(10000);
		state = look();
	}
	return state;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		int connections;
	} ways[] = {
		{ "10,000 in turn", in_turn, IN_TURN },
		{ "1,000 at once", at_once, AT_ONCE },
		{ "8 threads, 4 times", in_threads, THREADS * PER_THREAD * THREAD_ROUNDS },
	};
	struct state before;
	const int alone = entries("/proc/self/task");
	char *error = NULL;
	sqlite3 *db;
	int bad = 0;

	if (argc < 2 || mkstemp(path) < 0)
		return 2;
	db = open_one();
	must_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2), (3)");
	/* With a budget, the library might later start one more thread, which stays. */
	setenv("QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT", "0", 1);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
	if (sqlite3_load_extension(db, argv[1], "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	must(NULL, sqlite3_open(":memory:", &watcher), "sqlite3_open");
	must_exec(watcher, "PRAGMA system.query_profiler_cpu_time_period_ns = 0");
	/* Afterwards all objects exist that are created once, or kept for reuse. */
	in_threads();
	at_once();
	while (metric("store_flushes") == 0)
		usleep(10000);
	before = look_without_joined(alone + 1); /* the flusher stays */
	show("before", &before);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct state after;
		long grown;

		ways[i].run();
		after = look_without_joined(before.os_threads);
		show(ways[i].name, &after);
		/* Memory grows by new stacks, and by pages of the trace file, which grows over time on a
		 * busy machine. A leak for each of 10,000 connections would be larger. */
		grown = after.stored > before.stored ? after.stored - before.stored : 0;
		bad |= after.bytes - before.bytes > 32 * ways[i].connections + STACKS_BYTES + grown ||
		       after.fds != before.fds || after.os_threads != before.os_threads ||
		       after.sessions != before.sessions || after.timers > before.timers ||
		       after.threads > before.threads || after.refused;
		before.bytes = after.bytes;
		before.stored = after.stored;
	}
	sqlite3_close(watcher);
	sqlite3_close(db);
	unlink(path);
	return bad;
}
