/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's sorter threads, from their first microsecond to their last. Each thread records its CPU clock when
 * it ends, and its samples must add up to that time.
 */
#include "../host/host.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS 512
static struct {
	int thread_id;
	uint64_t cpu_ns;
} workers[WORKERS];
static int worker_count;
static pthread_key_t key;
static int main_thread;

/* Runs when the thread ends, after all of the worker's work. */
static void on_end(void *value)
{
	int i = __atomic_fetch_add(&worker_count, 1, __ATOMIC_RELAXED);

	(void)value;
	if (i < WORKERS) {
		workers[i].thread_id = (int)syscall(SYS_gettid);
		workers[i].cpu_ns = host_thread_cpu();
	}
}

/* The sort calls this on any of its threads. */
static int compare(void *context, int a_size, const void *a, int b_size, const void *b)
{
	int rc = memcmp(a, b, (size_t)(a_size < b_size ? a_size : b_size));

	(void)context;
	if (!pthread_getspecific(key) && (int)syscall(SYS_gettid) != main_thread)
		pthread_setspecific(key, &worker_count);
	return rc ? rc : a_size - b_size;
}

static void test_workers(void **state)
{
	char path[128];
	uint64_t by_clock = 0;
	int64_t sampled, logged, foreign;
	sqlite3 *db;

	(void)state;
	main_thread = (int)syscall(SYS_gettid);
	assert_int_equal(pthread_key_create(&key, on_end), 0);
	snprintf(path, sizeof(path), "%s/sorter.db", host_directory());
	db = host_open(path);
	sqlite3_create_collation(db, "slow", SQLITE_UTF8, NULL, compare);
	host_exec(db,
	          "PRAGMA query_profiler_cpu_time_period_ns = 1000000; PRAGMA threads = 4;"
	          "PRAGMA synchronous = OFF; PRAGMA cache_size = -1000; CREATE TABLE t(a, b COLLATE slow);"
	          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600000) "
	          "INSERT INTO t SELECT x, hex(randomblob(12)) FROM c");
	host_exec(db, "CREATE INDEX i ON t(b)");
	host_quiet(db);

	host_exec(db, "CREATE TEMP TABLE worker(thread_id, cpu_ns)");
	assert_true(worker_count > 1 && worker_count <= WORKERS);
	for (int i = 0; i < worker_count; i++) {
		by_clock += workers[i].cpu_ns;
		host_exec(db, "INSERT INTO worker VALUES (%d, %lld)", workers[i].thread_id,
		          (long long)workers[i].cpu_ns);
	}
	logged = host_int(
		db, "SELECT worker_cpu_time_ns FROM system.query_log WHERE query LIKE 'CREATE INDEX%%'");
	sampled = host_int(
		db, "SELECT coalesce(sum(weight * period_ns), 0) FROM system.trace_log WHERE thread_id IN "
		    "(SELECT thread_id FROM worker) AND query_id = (SELECT query_id FROM system.query_log "
		    "WHERE query LIKE 'CREATE INDEX%%')");
	foreign = host_int(
		db, "SELECT count(*) FROM system.trace_log WHERE thread_id IN (SELECT thread_id FROM worker) "
		    "AND query_id IS NOT (SELECT query_id FROM system.query_log WHERE query LIKE 'CREATE "
		    "INDEX%%')");
	printf("%d workers: %.1f ms by their clocks, %.1f ms in the log, %.1f ms sampled\n", worker_count,
	       (double)by_clock / 1e6, (double)logged / 1e6, (double)sampled / 1e6);
	assert_int_equal(foreign, 0);
	/* The log includes workers without a comparison, but not a thread's end. The clocks include a
	 * thread's end, but not such workers. */
	assert_true((double)logged > 0.98 * (double)by_clock && (double)logged < 1.05 * (double)by_clock);
	assert_true((double)sampled > 0.95 * (double)by_clock && (double)sampled < 1.05 * (double)by_clock);
	/* Each worker alone, except for one period and for the thread's time before and after its work. */
	assert_int_equal(host_int(db,
	                          "SELECT count(*) FROM worker AS w WHERE abs(cpu_ns - (SELECT coalesce(sum("
	                          "weight * period_ns), 0) FROM system.trace_log AS t WHERE t.thread_id = "
	                          "w.thread_id)) > 1500000"),
	                 0);
	/* and the whole query by its samples */
	assert_int_equal(
		host_int(db, "SELECT count(*) FROM system.query_log WHERE query LIKE 'CREATE INDEX%%' AND "
	                     "weight_cpu * 1e6 BETWEEN 0.85 * (cpu_time_ns + worker_cpu_time_ns) AND "
	                     "1.15 * (cpu_time_ns + worker_cpu_time_ns)"),
		1);
	host_close(db);
}

struct made {
	pthread_barrier_t ends;
	pthread_t thread;
};

/* A thread that the host's function starts. It burns, and ends after the query. */
static void *burn(void *ends)
{
	workers[0].thread_id = (int)syscall(SYS_gettid);
	while (host_thread_cpu() < 100000000)
		;
	pthread_barrier_wait(ends);
	while (host_thread_cpu() < 150000000)
		;
	return NULL;
}

static void make_thread(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct made *made = sqlite3_user_data(context);

	(void)argc, (void)argv;
	assert_int_equal(pthread_create(&made->thread, NULL, burn, &made->ends), 0);
	pthread_barrier_wait(&made->ends);
}

/* SQLite starts no threads here because PRAGMA threads is 0. */
static void test_threads_of_the_host(void **state)
{
	struct made made;
	sqlite3 *db = host_open(":memory:");

	(void)state;
	assert_int_equal(pthread_barrier_init(&made.ends, NULL, 2), 0);
	assert_int_equal(
		sqlite3_create_function(db, "make_thread", 0, SQLITE_UTF8, &made, make_thread, NULL, NULL),
		SQLITE_OK);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	host_exec(db, "SELECT make_thread()");
	assert_int_equal(pthread_join(made.thread, NULL), 0);
	host_quiet(db);
	assert_int_equal(
		host_int(db, "SELECT count(*) FROM system.query_log WHERE query LIKE 'SELECT make%%'"), 1);
	assert_int_equal(host_int(db, "SELECT sum(worker_cpu_time_ns) FROM system.query_log WHERE query LIKE "
	                              "'SELECT make%%'"),
	                 0);
	assert_int_equal(host_int(db, "SELECT count(*) FROM system.trace_log WHERE thread_id = %d",
	                          workers[0].thread_id),
	                 0);
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_workers),
		                            cmocka_unit_test(test_threads_of_the_host) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
