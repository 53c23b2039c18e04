/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares waits with the kernel's own record of each time that the thread left its processor and returned
 * (PERF_RECORD_SWITCH), in one run. Skipped if perf_event_open() is not permitted.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "../lib/must.h"
#include "../lib/steal.h"

#define ROUNDS 400
#define RING_PAGES 256u

static int switches = -1; /* file descriptor */
static struct perf_event_mmap_page *ring;
static double kernel_waited, kernel_preempted; /* ns */
static unsigned long count, lost;

/* Counts the switches of the calling thread. */
static int open_switches(void)
{
	struct perf_event_attr wanted = {
		.size = sizeof(wanted),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.context_switch = 1,
		.sample_id_all = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = 1 << 30,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	switches = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (switches < 0)
		return -1;
	ring = mmap(NULL, (RING_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, switches, 0);
	return ring == MAP_FAILED ? -1 : 0;
}

struct record {
	struct perf_event_header header;
	uint64_t time_ns;
};

static void copy_record(uint64_t at, void *to, size_t size)
{
	const char *data = (const char *)ring + ring->data_offset;

	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = data[(at + i) % ring->data_size];
}

static void read_switches(void)
{
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), left_ns = 0;
	int was_preempted = 0;
	struct record record;

	for (uint64_t at = 0; at < head; at += record.header.size) {
		copy_record(at, &record.header, sizeof(record.header));
		if (record.header.type == PERF_RECORD_LOST)
			lost++;
		if (record.header.type != PERF_RECORD_SWITCH)
			continue;
		copy_record(at, &record, sizeof(record));
		if (record.header.misc & PERF_RECORD_MISC_SWITCH_OUT) {
			left_ns = record.time_ns;
			was_preempted = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
			count++;
		} else if (left_ns) {
			*(was_preempted ? &kernel_preempted : &kernel_waited) +=
				(double)(record.time_ns - left_ns);
		}
	}
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void wait_on_condition(long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&never, &mutex, &until);
	pthread_mutex_unlock(&mutex);
}

static void work(sqlite3_context *context, int argument_count, sqlite3_value **values)
{
	volatile unsigned long x = 1;

	(void)argument_count, (void)values;
	ioctl(switches, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 3)
			usleep((useconds_t)(i % 10 ? 50 + i % 7 * 100 : 20000));
		else
			wait_on_condition(i % 5 * 1000000 + 100000);
		for (int k = 0; k < 100000; k++)
			x = x * 6364136223846793005ul + 1;
	}
	ioctl(switches, PERF_EVENT_IOC_DISABLE, 0);
	sqlite3_result_int64(context, (sqlite3_int64)x);
}

static double ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *row;
	double value;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) || sqlite3_step(row) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	value = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return value;
}

#define OF_WORK " FROM system.query_log WHERE query_id = 'work'"

static void test_kernel(void **state)
{
	double waited, delay, off, sampled, kernel;
	unsigned long long ticks;
	sqlite3 *db;

	(void)state;
	if (open_switches()) {
		printf("  perf_event_open() is not allowed here\n");
		skip();
	}
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	must_load(db, QUERYPROF_LIBRARY);
	must_exec(db, "PRAGMA query_profiler_off_cpu_period_ns = '1ms'");
	sqlite3_create_function(db, "work", 0, SQLITE_UTF8, NULL, work, NULL, NULL);
	must_exec(db, "PRAGMA query_id = 'work'");
	ticks = stolen_ticks();
	ask(db, "SELECT work()");
	ticks = stolen_ticks() - ticks;
	read_switches();
	kernel = kernel_waited + kernel_preempted;
	waited = ask(db, "SELECT sleep_ns + other_wait_ns" OF_WORK);
	delay = ask(db, "SELECT run_delay_ns" OF_WORK);
	off = ask(db, "SELECT sleep_ns + other_wait_ns + mutex_wait_ns + run_delay_ns + rest_ns" OF_WORK);
	sampled = ask(
		db,
		"SELECT sum(value) FROM system.trace_log WHERE query_id = 'work' AND trace_type = 'OffCPU'");
	printf("  %lu switches (%lu lost). The kernel: off the CPU for %.3f s, of which %.3f s preempted. "
	       "The query: waits"
	       " %.3f s (%+.2f %%), with run delay %.3f s (%+.2f %%), with the rest %.3f s (%+.2f %%); "
	       "sampled %.3f s\n",
	       count, lost, kernel / 1e9, kernel_preempted / 1e9, waited / 1e9,
	       100 * (waited - kernel_waited) / kernel_waited, (waited + delay) / 1e9,
	       100 * (waited + delay - kernel) / kernel, off / 1e9, 100 * (off - kernel) / kernel,
	       sampled / 1e9);
	assert_int_equal(lost, 0);
	/* The samples of hooked waits, and those that the flusher derives from the run delay. */
	assert_true(ask(db, "SELECT abs(sleep_ns + other_wait_ns + mutex_wait_ns + run_delay_ns + "
	                    "iif(major_faults, rest_ns, 0) -"
	                    " (SELECT sum(value) FROM system.trace_log WHERE query_id = 'work' AND "
	                    "trace_type = 'OffCPU'))" OF_WORK) <= 4e6);
	assert_true(waited + delay >= kernel * 0.98 && waited + delay <= kernel * 1.02);
	assert_true(off >= kernel * 0.98 && off <= kernel * 1.02 + stolen_ns(ticks));
	assert_true(ask(db,
	                "SELECT max(wait_ns) <= (SELECT query_duration_ns" OF_WORK ") FROM system.trace_log"
	                " WHERE query_id = 'work' AND trace_type = 'OffCPU'") == 1);
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
