/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher's speed, compared with a plain one-row-per-sample table in the same run: samples a second from
 * ring to file, CPU time per sample, bytes per sample.
 *
 * The producer fills the ring as fast as the flusher empties it, with stacks of 30 frames out of 2,500, as
 * skewed as real ones, and one query per 1,000 samples.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../store/support.h"

#define STACKS 2500
#define DEPTH 30

static uint64_t stacks[STACKS][DEPTH];

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double file_bytes(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (double)status.st_size;
}

static size_t choose_stack(void)
{
	size_t any = (size_t)random() % STACKS;

	return any * any / STACKS;
}

struct result {
	double per_second, cpu_us, bytes;
};

static struct result run_store(size_t count)
{
	char *path = in_folder("store.db");
	struct result result;
	double start, cpu;
	uint64_t lost;

	start_store_with_ring(path, 0, 64 << 20);
	start = seconds(CLOCK_MONOTONIC);
	for (size_t i = 0; i < count; i++) {
		struct a_sample sample = {
			.timestamp_ns = T0 + i * 1000 - (uint64_t)random() % 4000,
			.query = { 0x0190000000007000ull + i / 1000, 0x8000000000000000ull },
			.thread_id = 4000 + (uint32_t)(i % 8),
			.cpu_id = i % 2,
			.trace = stacks[choose_stack()],
			.depth = DEPTH,
		};
		while (!put_sample(sample))
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	drain();
	result.per_second = (double)count / (seconds(CLOCK_MONOTONIC) - start);
	cpu = (double)store_counter(STORE_FLUSHER_CPU_TIME_NS) / 1e9;
	lost = store_counter(STORE_LOST);
	stop_store();
	result.cpu_us = cpu / (double)count * 1e6;
	result.bytes = file_bytes(path) / (double)count;
	if (lost || store_counter(STORE_SAMPLES) != count)
		printf("  lost %llu, stored %llu of %zu\n", (unsigned long long)lost,
		       (unsigned long long)store_counter(STORE_SAMPLES), count);
	return result;
}

static void execute(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL)) {
		printf("%s: %s\n", sql, sqlite3_errmsg(db));
		exit(1);
	}
}

/* The simplest format: each row contains the stack. */
static struct result run_plain(size_t count)
{
	char *path = in_folder("plain.db");
	struct result result;
	sqlite3_stmt *insert;
	double start, cpu;
	sqlite3 *db;

	sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	execute(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
	            "CREATE TABLE trace_log (time_ns INTEGER, type INTEGER, thread_id INTEGER, query INTEGER,"
	            " cpu INTEGER, weight INTEGER, period INTEGER, trace BLOB)");
	sqlite3_prepare_v2(db, "INSERT INTO trace_log VALUES (?, 0, ?, ?, ?, 1, 10000000, ?)", -1, &insert,
	                   NULL);
	start = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < count; i++) {
		if (i % 16384 == 0)
			execute(db, i ? "COMMIT; BEGIN" : "BEGIN");
		sqlite3_bind_int64(insert, 1, (int64_t)(T0 + i * 1000));
		sqlite3_bind_int64(insert, 2, (int64_t)(4000 + i % 8));
		sqlite3_bind_int64(insert, 3, (int64_t)(i / 1000));
		sqlite3_bind_int64(insert, 4, (int64_t)(i % 2));
		sqlite3_bind_blob(insert, 5, stacks[choose_stack()], sizeof(stacks[0]), SQLITE_STATIC);
		sqlite3_step(insert);
		sqlite3_reset(insert);
	}
	execute(db, "COMMIT");
	result.per_second = (double)count / (seconds(CLOCK_MONOTONIC) - start);
	result.cpu_us = (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count * 1e6;
	sqlite3_finalize(insert);
	sqlite3_close(db);
	result.bytes = file_bytes(path) / (double)count;
	return result;
}

static void print(const char *name, struct result result)
{
	printf("%-8s %10.0f samples/s %6.2f us CPU a sample %7.1f bytes a sample\n", name, result.per_second,
	       result.cpu_us, result.bytes);
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000000;
	struct result plain, store;

	for (size_t i = 0; i < STACKS; i++) {
		for (size_t frame = 0; frame < DEPTH; frame++)
			stacks[i][frame] = 0x7f0000000000 + ((uint64_t)random() & 0xffffff);
	}
	set_up(NULL);
	plain = run_plain(count);
	store = run_store(count);
	print("plain", plain);
	print("store", store);
	printf("%-8s %10.2f x %20.2f x %22.2f x\n", "ratio", store.per_second / plain.per_second,
	       store.cpu_us / plain.cpu_us, store.bytes / plain.bytes);
	tear_down(NULL);
	return 0;
}
