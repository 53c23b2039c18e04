/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares waits with a reference. This program is between SQLite and the kernel, delays the calls of one
 * kind, and records how long each took. It reads its clock inside queryprof's measurement, so a wait is
 * never shorter than the reference, even on a busy machine. The median shows how much longer waits are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "../lib/clock.h"
#include "../lib/sleeps.h"
#include "number.h"
#include "queryprof.h"

#define PERIOD_NS 1000000
#define DELAY_NS 3000000

/* --- between SQLite and the kernel ------------------------------------------------------ */

enum call { NO_CALL, READS, WRITES, SYNCS };

#define TRUTHS_MAX 4096

static _Thread_local enum call delayed;
static _Thread_local bool sleeps_by_hook; /* also sleep in a hooked function */
static _Thread_local int delays_left;
static int64_t truths[TRUTHS_MAX];
static int truth_count;
static int64_t truths_cpu_ns; /* CPU time of the thread in the delayed calls */
static int hooked_sleeps;     /* sleeps that were waits */

/* Makes the system call directly, so that no hook sees it. */
static void sleep_unseen(int64_t ns)
{
	const struct timespec time = { 0, ns };
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "0"(SYS_nanosleep), "D"(&time), "S"(NULL)
	                 : "rcx", "r11", "memory");
#else
	register long number __asm__("x8") = SYS_nanosleep;
	register long first __asm__("x0") = (long)&time;
	register long second __asm__("x1") = 0;

	__asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
#endif
}

static bool is_delayed(enum call call)
{
	return delayed == call && delays_left > 0;
}

static void delay(int64_t start, int64_t start_cpu, long start_switches)
{
	sleep_unseen(DELAY_NS);
	if (sleeps_by_hook)
		hooked_sleeps += sleep_for_us(DELAY_NS / 1000);
	delays_left--;
	if (voluntary_switches() == start_switches)
		return;
	truths_cpu_ns += (int64_t)clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu;
	if (truth_count < TRUTHS_MAX)
		truths[truth_count++] = (int64_t)now_ns() - start;
}

#define BETWEEN(call, result, name, parameters, arguments)                                                   \
	__attribute__((visibility("default"))) result name parameters                                        \
	{                                                                                                    \
		static result(*real) parameters;                                                             \
		int64_t start = (int64_t)now_ns();                                                           \
		int64_t start_cpu = is_delayed(call) ? (int64_t)clock_read_ns(CLOCK_THREAD_CPUTIME_ID) : 0;  \
		long start_switches = is_delayed(call) ? voluntary_switches() : 0;                           \
		if (!real)                                                                                   \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                                           \
		result value = real arguments;                                                               \
		if (is_delayed(call)) {                                                                      \
			int saved_errno = errno;                                                             \
			delay(start, start_cpu, start_switches);                                             \
			errno = saved_errno;                                                                 \
		}                                                                                            \
		return value;                                                                                \
	}
BETWEEN(READS, ssize_t, pread, (int a, void *b, size_t c, off_t d), (a, b, c, d))
BETWEEN(READS, ssize_t, pread64, (int a, void *b, size_t c, off64_t d), (a, b, c, d))
BETWEEN(WRITES, ssize_t, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
BETWEEN(WRITES, ssize_t, pwrite64, (int a, const void *b, size_t c, off64_t d), (a, b, c, d))
BETWEEN(SYNCS, int, fsync, (int a), (a))
BETWEEN(SYNCS, int, fdatasync, (int a), (a))

static void delay_calls(enum call call, int most)
{
	delayed = call;
	delays_left = most;
	truth_count = 0;
	truths_cpu_ns = 0;
	hooked_sleeps = 0;
}

/* --- a connection ----------------------------------------------------------------------- */

static char folder[] = "/tmp/queryprof-truth-XXXXXX";
static char database[64];

static void exec(sqlite3 *db, const char *format, ...)
{
	char *error = NULL, *sql;
	va_list values;

	va_start(values, format);
	sql = sqlite3_vmprintf(format, values);
	va_end(values);
	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
	sqlite3_free(sql);
}

static sqlite3 *connect_to(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	must_load(db, QUERYPROF_LIBRARY);
	exec(db, "PRAGMA query_profiler_off_cpu_period_ns = %d", PERIOD_NS);
	exec(db, "PRAGMA log_queries_min_query_duration_ns = 0");
	return db;
}

/* --- input and output ------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Every delayed call of the query that was a wait has a sample of its length. `objects` is an SQL list. */
static void check_truth(sqlite3 *db, const char *id, const char *cause, const char *objects)
{
	int64_t *excess = calloc((size_t)truth_count + 1, sizeof(*excess));
	sqlite3_stmt *rows;
	char *sql = sqlite3_mprintf(
		"SELECT wait_ns FROM system.trace_log WHERE query_id = '%s' AND wait_cause = '%s'"
		" AND wait_object IN (%s) AND wait_ns >= %d ORDER BY wait_ns",
		id, cause, objects, DELAY_NS);
	int count = 0;

	assert_true(truth_count > 0);
	qsort(truths, (size_t)truth_count, sizeof(*truths), compare_numbers);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
	/* Slow calls of the kernel have samples, too. On a busy machine the two clocks differ by the time
	 * of reading both. */
	while (count < truth_count && sqlite3_step(rows) == SQLITE_ROW)
		if (sqlite3_column_int64(rows, 0) - truths[count] >= -100000) {
			excess[count] = sqlite3_column_int64(rows, 0) - truths[count];
			count++;
		}
	sqlite3_finalize(rows);
	sqlite3_free(sql);
	assert_int_equal(count, truth_count);
	qsort(excess, (size_t)count, sizeof(*excess), compare_numbers);
	printf("  %-12s %3d calls of %d ms, each has its sample; median excess %" PRId64 " ns\n", cause,
	       count, DELAY_NS / 1000000, excess[count / 2]);
	/* With fewer than 5 calls, check the minimum, because after a wait the thread may lose its processor
	 * immediately. */
	if (excess[count < 5 ? 0 : count / 2] > 100000) {
		for (int i = 0; i < count; i++)
			printf("  a call of %" PRId64 " ns; an excess of %" PRId64 " ns\n", truths[i],
			       excess[i]);
		fail();
	}
	free(excess);
}

/* The parts of the run's time add up to at most the run's time. */
static void check_sums(sqlite3 *db, const char *id, const char *column, int64_t least)
{
	assert_int_equal(
		number(db,
	               "SELECT cpu_time_ns + lock_wait_ns + io_read_ns + io_write_ns + io_sync_ns + "
	               "mutex_wait_ns +"
	               " sleep_ns + other_wait_ns + run_delay_ns + rest_ns <= execution_time_ns + 100000"
	               " FROM system.query_log WHERE query_id = '%s'",
	               id),
		1);
	assert_true(number(db, "SELECT %s FROM system.query_log WHERE query_id = '%s'", column, id) >= least);
}

/* A wait excludes the CPU time in the call. A real fsync() on a busy disk uses several ms of it. */
static int64_t sum_of_waits(void)
{
	int64_t sum = -truths_cpu_ns;

	for (int i = 0; i < truth_count; i++)
		sum += truths[i];
	return sum;
}

static void run_as(sqlite3 *db, const char *id, enum call call, int most, const char *sql)
{
	exec(db, "PRAGMA query_id = '%s'", id);
	delay_calls(call, most);
	exec(db, "%s", sql);
	delayed = NO_CALL;
}

/* For a statement of a few calls: repeats it until all its calls were waits. */
static void run_until_all_wait(sqlite3 *db, const char *id, enum call call, int most, const char *sql)
{
	do
		run_as(db, id, call, most, sql);
	while (truth_count < most - delays_left);
}

#define FILL                                                                                                 \
	"INSERT INTO t WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"                 \
	" SELECT hex(randomblob(200)) FROM n"

static void test_files(void **state)
{
	sqlite3 *db = *state;

	exec(db, "CREATE TABLE t(x)");
	exec(db, "PRAGMA cache_size = 10");
	run_as(db, "syncs", SYNCS, 100, FILL);
	check_truth(db, "syncs", "sync", "'journal', 'database', 'folder'");
	check_sums(db, "syncs", "io_sync_ns", sum_of_waits() * 9 / 10);
	run_as(db, "writes", WRITES, 30, FILL);
	check_truth(db, "writes", "write", "'journal', 'database'");
	check_sums(db, "writes", "io_write_ns", sum_of_waits() * 9 / 10);
	run_as(db, "reads", READS, 30, "SELECT sum(length(x)) FROM t");
	check_truth(db, "reads", "read", "'database'");
	check_sums(db, "reads", "io_read_ns", sum_of_waits() * 9 / 10);
	exec(db, "PRAGMA temp_store = FILE");
	run_as(db, "spills", WRITES, 20, "SELECT count(*) FROM (SELECT x FROM t ORDER BY x DESC LIMIT 5000)");
	check_truth(db, "spills", "spill", "'temporary'");
	exec(db, "PRAGMA journal_mode = WAL");
	exec(db, "PRAGMA synchronous = FULL");
	run_until_all_wait(db, "WAL", SYNCS, 10, "INSERT INTO t VALUES (1)");
	check_truth(db, "WAL", "sync", "'WAL', 'folder'");
	exec(db, FILL); /* one page is one call, after which the thread may lose its processor; this writes
	                 * more pages */
	run_as(db, "checkpoint", WRITES, 10, "PRAGMA wal_checkpoint(TRUNCATE)");
	check_truth(db, "checkpoint", "checkpoint", "'database'");
	/* The commit runs a checkpoint. */
	exec(db, "PRAGMA wal_autocheckpoint = 1");
	run_until_all_wait(db, "commit", SYNCS, 10, "INSERT INTO t VALUES (1)");
	assert_true(number(db,
	                   "SELECT count(*) FROM system.trace_log WHERE query_id = 'commit' AND wait_cause = "
	                   "'checkpoint'"
	                   " AND wait_ns >= %d",
	                   DELAY_NS) > 0);
	assert_true(number(db,
	                   "SELECT count(*) FROM system.trace_log WHERE query_id = 'commit' AND wait_cause = "
	                   "'sync'"
	                   " AND wait_object = 'WAL' AND wait_ns >= %d",
	                   DELAY_NS) > 0);
	exec(db, "PRAGMA journal_mode = DELETE");
}

/* A wait inside a hooked call that itself waits. Each is counted once. */
static void test_nested_calls(void **state)
{
	sqlite3 *db = *state;

	sleeps_by_hook = true;
	run_as(db, "nested", SYNCS, 10, "INSERT INTO t VALUES (1)");
	sleeps_by_hook = false;
	assert_true(truth_count > 0);
	check_sums(db, "nested", "sleep_ns", hooked_sleeps * (int64_t)DELAY_NS * 9 / 10);
	check_sums(db, "nested", "io_sync_ns", truth_count * (int64_t)DELAY_NS * 9 / 10);
}

/* Returns whether the kernel has dropped the file's pages. */
static bool drop_pages(const char *path)
{
	int file = open(path, O_RDONLY);
	off_t size = lseek(file, 0, SEEK_END);
	unsigned char resident[8] = { 1 };
	void *mapped;

	fsync(file);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	mapped = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, file, 0);
	if (mapped != MAP_FAILED) {
		mincore(mapped, 4 * 4096, resident);
		munmap(mapped, (size_t)size);
	}
	close(file);
	return !((resident[0] | resident[1] | resident[2] | resident[3]) & 1);
}

/* The pages are not in memory, so the thread waits while the kernel reads them. A thread that immediately
 * loses its processor does not wait, because the pages are in memory when it runs again. The test
 * therefore tries several times. */
static void test_cold_pages(void **state)
{
	sqlite3 *db = *state;
	int64_t waited_ns = 0;
	char id[16];

	if (!drop_pages(database)) {
		printf("  the file system keeps its pages\n");
		skip();
	}
	exec(db, "PRAGMA query_profiler_off_cpu_period_ns = '10us'");
	for (int trial = 0; trial < 50 && waited_ns < 10000; trial++) {
		drop_pages(database);
		snprintf(id, sizeof(id), "cold-%d", trial);
		run_as(db, id, NO_CALL, 0, "SELECT sum(length(x)) FROM t");
		waited_ns = number(db, "SELECT io_read_ns FROM system.query_log WHERE query_id = '%s'", id);
		printf("  cold pages: %" PRId64 " ns waited in reads\n", waited_ns);
	}
	exec(db, "PRAGMA query_profiler_off_cpu_period_ns = %d", PERIOD_NS);
	check_sums(db, id, "io_read_ns", 10000);
	assert_true(
		number(db,
	               "SELECT count(*) FROM system.trace_log WHERE query_id = '%s' AND wait_cause = 'read'"
	               " AND wait_object = 'database'",
	               id) > 0);
}

/* --- threads ---------------------------------------------------------------------------- */

static void test_workers(void **state)
{
	sqlite3 *db = *state;

	exec(db, "PRAGMA threads = 2");
	exec(db, "PRAGMA query_id = 'workers'");
	exec(db, "CREATE INDEX i ON t(x)");
	exec(db, "PRAGMA threads = 0");
	check_sums(db, "workers", "worker_cpu_time_ns", 1);
	printf("  workers waited %" PRId64 " ns\n",
	       number(db, "SELECT worker_wait_ns FROM system.query_log WHERE query_id = 'workers'"));
}

#define HELD_NS 30000000

static int held; /* atomic */

static void *hold_allocator(void *unused_argument)
{
	sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_MEM);

	(void)unused_argument;
	sqlite3_mutex_enter(mutex);
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	sleep_unseen(HELD_NS);
	sqlite3_mutex_leave(mutex);
	return NULL;
}

static void *hold_connection(void *db)
{
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	sleep_unseen(HELD_NS);
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	return NULL;
}

static void wait_for_holder(sqlite3 *db, void *(*hold)(void *), const char *object)
{
	pthread_t thread;
	sqlite3_stmt *statement;
	int64_t found = 0;

	/* The thread may be late and find the mutex free, so the test tries several times. */
	for (int trial = 0; trial < 200 && !found; trial++) {
		exec(db, "PRAGMA query_id = '%s-%d'", object, trial);
		assert_int_equal(
			sqlite3_prepare_v2(db, "SELECT hex(zeroblob(5000)) || abs(-1)", -1, &statement, NULL),
			SQLITE_OK);
		__atomic_store_n(&held, 0, __ATOMIC_RELAXED);
		pthread_create(&thread, NULL, hold, db);
		while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
			;
		assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
		sqlite3_finalize(statement);
		pthread_join(thread, NULL);
		found = number(db,
		               "SELECT count(*) FROM system.trace_log WHERE query_id = '%s-%d' AND "
		               "wait_cause = 'mutex'"
		               " AND wait_object = '%s' AND wait_ns BETWEEN %d AND 100 * %d",
		               object, trial, object, HELD_NS / 2, HELD_NS);
	}
	assert_int_equal(found, 1);
}

static void test_mutexes(void **state)
{
	wait_for_holder(*state, hold_connection, "connection");
	wait_for_holder(*state, hold_allocator, "allocator");
}

#define THREADS 8
#define NAPS 300
#define NAP_US 50

static qp_query_handle *handle;
static int64_t napped_ns; /* atomic */
static int naps;          /* naps that were waits; atomic */
static pthread_barrier_t all_inside;

static void *nap(void *unused_argument)
{
	int64_t start;
	int waits = 0;

	(void)unused_argument;
	qp_query_handle *before = qp_query_enter(handle);
	pthread_barrier_wait(&all_inside);
	start = (int64_t)now_ns();
	for (int i = 0; i < NAPS; i++)
		waits += sleep_for_us(NAP_US);
	__atomic_fetch_add(&napped_ns, (int64_t)now_ns() - start, __ATOMIC_RELAXED);
	__atomic_fetch_add(&naps, waits, __ATOMIC_RELAXED);
	qp_query_leave(before);
	return NULL;
}

/* All threads add to the same sums. They are inside the query together, because a thread that begins after
 * another has ended would count as the same thread. */
static void test_handle(void **state)
{
	const qp_query query = { .size = sizeof(query), .query_id = "handle", .text = "SELECT many" };
	pthread_t threads[THREADS];
	sqlite3 *db = *state;

	handle = qp_query_start(&query);
	assert_non_null(handle);
	pthread_barrier_init(&all_inside, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, nap, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(qp_query_finish(handle, 0, NULL), QP_OK);
	printf("  %d threads slept %.3f s, the query says %.3f s\n", THREADS, (double)napped_ns / 1e9,
	       (double)number(db, "SELECT sleep_ns FROM system.query_log WHERE query_id = 'handle'") / 1e9);
	/* At least the sleeps that were waits, of NAP_US each. */
	assert_true(number(db, "SELECT sleep_ns FROM system.query_log WHERE query_id = 'handle'") >=
	            naps * INT64_C(1000) * NAP_US * 9 / 10);
	assert_true(number(db, "SELECT sleep_ns FROM system.query_log WHERE query_id = 'handle'") <=
	            napped_ns);
	assert_int_equal(number(db, "SELECT threads FROM system.query_log WHERE query_id = 'handle'"),
	                 THREADS);
}

/* --- the query that waits --------------------------------------------------------------- */

static jmp_buf away;
static bool jumps;
static sqlite3 *inner;
static int64_t first_ns, last_ns;

static int busy(void *unused_argument, int count)
{
	(void)unused_argument;
	if (count == 0)
		first_ns = (int64_t)now_ns();
	usleep(5000);
	last_ns = (int64_t)now_ns();
	if (inner && count == 0) {
		exec(inner, "PRAGMA query_id = 'inside'");
		number(inner, "SELECT nap_ms(20)");
	}
	if (jumps && count == 3)
		longjmp(away, 1);
	return count < 10;
}

static void nap_ms(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	usleep((useconds_t)sqlite3_value_int(values[0]) * 1000);
	sqlite3_result_int(context, 1);
}

static sqlite3 *make_napping(const char *path)
{
	sqlite3 *db = connect_to(path);

	sqlite3_create_function(db, "nap_ms", 1, SQLITE_UTF8, NULL, nap_ms, NULL, NULL);
	return db;
}

#define ONE(db, id, condition)                                                                               \
	assert_int_equal(number(db, "SELECT count(*) FROM system.query_log WHERE query_id = '%s' AND %s",    \
	                        id, condition),                                                              \
	                 1)

/* A query runs in the busy handler of another query. Its sleep counts for it and for the outer query, and
 * it has no lock wait. */
static void test_nested_queries(void **state)
{
	sqlite3 *db = *state, *holder = connect_to(database), *waiting = make_napping(database);

	inner = make_napping(":memory:");
	exec(holder, "BEGIN IMMEDIATE");
	sqlite3_busy_handler(waiting, busy, NULL);
	exec(waiting, "PRAGMA query_id = 'around'");
	assert_int_equal(sqlite3_exec(waiting, "INSERT INTO t VALUES (1)", NULL, NULL, NULL), SQLITE_BUSY);
	exec(holder, "COMMIT");
	ONE(db, "inside", "sleep_ns >= 18000000 AND lock_wait_ns = 0");
	ONE(db, "around", "lock_wait_ns >= 9 * 5000000 AND sleep_ns + lock_wait_ns <= execution_time_ns");
	assert_int_equal(
		number(db,
	               "SELECT count(*) FROM system.lock_waits WHERE query_id = 'around' AND wait_ns >= %lld",
	               (long long)(last_ns - first_ns)),
		1);
	assert_int_equal(number(db, "SELECT count(*) FROM system.lock_waits WHERE query_id = 'inside'"), 0);
	sqlite3_close(inner);
	inner = NULL;
	sqlite3_close(waiting);
	sqlite3_close(holder);
}

static void test_longjmp(void **state)
{
	sqlite3 *db = *state, *holder = connect_to(database), *left = connect_to(database),
		*other = make_napping(":memory:");

	exec(holder, "BEGIN IMMEDIATE");
	sqlite3_busy_handler(left, busy, NULL);
	exec(left, "PRAGMA query_id = 'left'");
	jumps = true;
	if (!setjmp(away)) {
		sqlite3_exec(left, "INSERT INTO t VALUES (1)", NULL, NULL, NULL);
		fail();
	}
	jumps = false;
	exec(holder, "COMMIT");
	exec(other, "PRAGMA query_id = 'after'");
	number(other, "SELECT nap_ms(20)");
	ONE(db, "after", "sleep_ns >= 18000000 AND lock_wait_ns = 0 AND sleep_ns <= execution_time_ns");
	assert_int_equal(number(db, "SELECT count(*) FROM system.trace_log WHERE query_id = 'after' AND "
	                            "wait_cause = 'lock'"),
	                 0);
	assert_true(number(db, "SELECT count(*) FROM system.trace_log WHERE query_id <> 'around' AND "
	                       "wait_cause = 'lock' AND"
	                       " wait_ns >= 5000000") >= 3);
	sqlite3_close(other);
	sqlite3_close(holder);
	/* `left` is leaked, because SQLite does not know that its call has ended. */
}

static void fork_and_nap(sqlite3_context *context, int count, sqlite3_value **values)
{
	int status = 1;
	pid_t child;

	(void)count, (void)values;
	child = fork();
	usleep(20000);
	if (!child)
		_exit(0);
	waitpid(child, &status, 0);
	sqlite3_result_int(context, status);
}

static void futex_for_ms(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct timespec time = { 0, sqlite3_value_int(values[0]) * 1000000L };
	int64_t start = (int64_t)now_ns();
	int word = 0;

	(void)count;
	assert_int_equal(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0), -1);
	assert_int_equal(errno, ETIMEDOUT);
	truths[0] = (int64_t)now_ns() - start;
	/* The hook passes on all arguments, and calls other than futex. */
	assert_int_equal(syscall(SYS_getpid), getpid());
	sqlite3_result_int(context, 1);
}

static void test_fork(void **state)
{
	sqlite3 *db = *state;

	sqlite3_create_function(db, "fork_and_nap", 0, SQLITE_UTF8, NULL, fork_and_nap, NULL, NULL);
	exec(db, "PRAGMA query_id = 'forks'");
	assert_int_equal(number(db, "SELECT fork_and_nap()"), 0);
	ONE(db, "forks", "sleep_ns >= 18000000 AND sleep_ns <= execution_time_ns");
	assert_int_equal(number(db, "SELECT count(*) FROM system.trace_log WHERE query_id = 'forks' AND "
	                            "wait_object = 'sleep'"),
	                 1);
}

static void test_futex(void **state)
{
	sqlite3 *db = *state;

	sqlite3_create_function(db, "futex_for_ms", 1, SQLITE_UTF8, NULL, futex_for_ms, NULL, NULL);
	exec(db, "PRAGMA query_id = 'futex'");
	number(db, "SELECT futex_for_ms(20)");
	assert_int_equal(
		number(db,
	               "SELECT count(*) FROM system.trace_log WHERE query_id = 'futex' AND wait_cause ="
	               " 'user function' AND wait_object = 'futex' AND wait_ns BETWEEN 20000000 AND %lld",
	               (long long)truths[0]),
		1);
	ONE(db, "futex", "other_wait_ns >= 18000000");
}

/* ---------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(database, sizeof(database), "%s/truth.db", folder);
	*state = connect_to(database);
	return 0;
}

static int tear_down(void **state)
{
	char command[200];

	sqlite3_close(*state);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),      cmocka_unit_test(test_nested_calls),
		cmocka_unit_test(test_cold_pages), cmocka_unit_test(test_workers),
		cmocka_unit_test(test_mutexes),    cmocka_unit_test(test_handle),
		cmocka_unit_test(test_fork),       cmocka_unit_test(test_nested_queries),
		cmocka_unit_test(test_longjmp),    cmocka_unit_test(test_futex),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
