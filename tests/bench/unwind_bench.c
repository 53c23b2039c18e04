/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a frame: this unwinder and others over the same stacks, inside a handler, in one process.
 * Absolute times depend on the machine, so compare ratios. README.md in this folder shows a run's output and
 * explains how to read it.
 *
 *   tools/bench --all unwind
 *
 * `unwind_bench --check` ends with status 1 if a budget is missed, and with 77 if one could not be measured.
 */
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/clock.h"
#include "../lib/thread_stack.h"
#include "handler/unwind/unwind.h"
#include "wire/record.h"
#include "modules/modules.h"
#include "unwind_peers.h"

#define REPEATS 60
#define EVICTED_ROUNDS 41
#define EVICT_BYTES (96u << 20) /* more than a last-level cache's share */

struct figures {
	const char *name;
	double frame_ns[PEERS];   /* hot */
	double evicted_ns[PEERS]; /* a frame, nothing of it in any cache */
	int frames[PEERS];
};

static struct figures *measured;
static char *evict_memory;
static volatile int sink;

/* The least of many short runs that alternate. Other work on the machine disturbs all of them, but hardly the
 * least. */
static void measure_hot(const void *context)
{
	for (int i = 0; i < PEERS; i++)
		measured->frame_ns[i] = 1e30;
	for (int repeat = 0; repeat < REPEATS; repeat++) {
		for (int i = 0; i < PEERS; i++) {
			if (peers[i].walk == NULL)
				continue;
			const int rounds = 1 + 1000 / peers[i].slow;
			int frames = peers[i].walk(context);
			peers[i].walk(context);
			const uint64_t start = now_ns();
			for (int round = 0; round < rounds; round++)
				frames = peers[i].walk(context);
			const double each = (double)(now_ns() - start) / rounds / frames;
			measured->frames[i] = frames;
			if (each < measured->frame_ns[i])
				measured->frame_ns[i] = each;
		}
	}
}

static void evict(void)
{
	for (size_t i = 0; i < EVICT_BYTES; i += 64)
		evict_memory[i]++;
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The median. */
static void measure_evicted(const void *context)
{
	static double each[PEERS][EVICTED_ROUNDS];

	for (int round = 0; round < EVICTED_ROUNDS; round++) {
		for (int i = 0; i < PEERS; i++) {
			if (peers[i].walk == NULL)
				continue;
			evict();
			now_ns(); /* loads the clock's own code before the measurement */
			const uint64_t start = now_ns();
			const int frames = peers[i].walk(context);
			each[i][round] = (double)(now_ns() - start) / frames;
		}
	}
	for (int i = 0; i < PEERS; i++) {
		qsort(each[i], EVICTED_ROUNDS, sizeof(double), compare_doubles);
		measured->evicted_ns[i] = each[i][EVICTED_ROUNDS / 2];
	}
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	measure_hot(context);
	measure_evicted(context);
}

/* --- the stacks ------------------------------------------------------------------- */

static void trap(void)
{
	__asm__ volatile("int3" : : : "memory");
}

__attribute__((noinline)) static int recurse(int n)
{
	int (*volatile self)(int) = recurse;

	if (n == 0)
		trap();
	else
		self(n - 1);
	return sink++;
}

static void dive(sqlite3 *database, int depth)
{
	(void)database;
	recurse(depth - 4);
}

/* SQLite sorts by a collation whose comparison runs a query that sorts by it. */
struct nest {
	sqlite3 *database;
	int left;
};

static int compare_deeply(void *argument, int a_size, const void *a, int b_size, const void *b)
{
	struct nest *nest = argument;
	const int least = a_size < b_size ? a_size : b_size;

	if (nest->left > 0) {
		nest->left--;
		sqlite3_exec(nest->database,
		             "SELECT count(*) FROM (SELECT value FROM json_each('[\"b\",\"a\"]')"
		             " ORDER BY value COLLATE deep LIMIT 9)",
		             NULL, NULL, NULL);
	} else if (nest->left == 0) {
		nest->left--;
		trap();
	}
	return memcmp(a, b, (size_t)least);
}

static void dive_in_sqlite(sqlite3 *database, int depth)
{
	struct nest nest = { database, depth };

	sqlite3_create_collation(database, "deep", SQLITE_UTF8, &nest, compare_deeply);
	nest.left = depth - 1;
	sqlite3_exec(database, "SELECT value FROM json_each('[\"b\",\"a\"]') ORDER BY value COLLATE deep",
	             NULL, NULL, NULL);
}

static struct {
	const char *name;
	void (*dive)(sqlite3 *database, int depth);
	int depth;
	struct figures figures;
} stacks[] = {
	{ "12 frames", dive, 12, { 0 } },
	{ "32 frames", dive, 32, { 0 } },
	{ "100 frames", dive, 100, { 0 } },
	{ "inside SQLite", dive_in_sqlite, 2, { 0 } },
};
#define STACKS (sizeof(stacks) / sizeof(stacks[0]))

/* A thread whose stack ends after a few frames of the C library. */
static void *run(void *database)
{
	peer_stack = thread_stack();
	for (size_t i = 0; i < STACKS; i++) {
		measured = &stacks[i].figures;
		stacks[i].dive(database, stacks[i].depth);
	}
	return NULL;
}

/* --- what comes out ------------------------------------------------------------------ */

/* `framed` is the stack on which a frame-pointer walk reaches the end. */
static void print_stack(const char *name, const struct figures *figures, const struct figures *framed)
{
	printf("%s\n  %-24s %6s  %18s  %18s\n", name, "", "frames", "hot, ns/frame", "evicted, ns/frame");
	for (int i = figures == framed ? 0 : 1; i < PEERS; i++) {
		if (peers[i].walk == NULL) {
			printf("  %-24s not installed (%s)\n", peers[i].name, peers[i].missing);
			continue;
		}
		printf("  %-24s %6d  %8.2f x %7.2f  %8.1f x %7.2f\n", peers[i].name, figures->frames[i],
		       figures->frame_ns[i], figures->frame_ns[i] / framed->frame_ns[PEER_FRAME_POINTERS],
		       figures->evicted_ns[i],
		       figures->evicted_ns[i] / framed->evicted_ns[PEER_FRAME_POINTERS]);
	}
}

static int missed, unmeasured;

static void print_budget(const char *what, double value, double budget)
{
	const bool good = value <= budget;

	printf("  %-52s %6.2f  budget %5.2f  %s\n", what, value, budget, good ? "met" : "MISSED");
	missed += !good;
}

static void print_unmeasured(const char *what, enum peer_id against)
{
	printf("  %-52s    not measured: no %s\n", what, peers[against].missing);
	unmeasured++;
}

static void print_budgets(const struct figures *figures, const struct figures *framed)
{
	const double *hot = figures->frame_ns, *cold = figures->evicted_ns;

	print_budget("memo, identical stack / frame-pointer walk",
	             hot[PEER_MEMO] / framed->frame_ns[PEER_FRAME_POINTERS], 1.5);
	if (peers[PEER_NONGNU].walk) {
		print_budget("rule cache / nongnu", hot[PEER_CACHE] / hot[PEER_NONGNU], 1.0);
		print_budget("rule cache / nongnu, evicted", cold[PEER_CACHE] / cold[PEER_NONGNU], 0.6);
	} else {
		print_unmeasured("rule cache / nongnu", PEER_NONGNU);
	}
	if (peers[PEER_LLVM].walk) {
		print_budget("nothing cached / LLVM", hot[PEER_MISS] / hot[PEER_LLVM], 0.5);
		print_budget("rule cache / LLVM", hot[PEER_CACHE] / hot[PEER_LLVM], 0.05);
	} else {
		print_unmeasured("nothing cached / LLVM", PEER_LLVM);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	pthread_t thread;
	sqlite3 *database;

	/* glibc loads libgcc at its first backtrace(). A module loaded during the walks would disable the
	 * rule cache, because only a flusher publishes the new map. */
	backtrace((void *[1]){ NULL }, 1);
	evict_memory = malloc(EVICT_BYTES);
	if (evict_memory == NULL || sqlite3_open(":memory:", &database) != SQLITE_OK ||
	    !peers_open(LLVM_MODULE) || modules_init() != 0 || !peers_see_modules())
		return 2;
	sigaction(SIGTRAP, &action, NULL);
	pthread_create(&thread, NULL, run, database);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < STACKS; i++) {
		/* SQLite is not built with frame pointers. The cost of such a build is taken from the
		 * shortest of the other stacks. */
		const struct figures *framed = &stacks[stacks[i].dive == dive ? i : 0].figures;
		print_stack(stacks[i].name, &stacks[i].figures, framed);
		print_budgets(&stacks[i].figures, framed);
		printf("\n");
	}
	const struct code_map *map = code_map_current();
	const size_t segment = sizeof(map->ranges[0]);
	printf("memory: rules %u bytes, map of %u segments %zu bytes (of 30: %zu),"
	       " memo %u bytes a thread\n",
	       unwind_cache_bytes, map->count, sizeof(*map) + map->count * segment,
	       sizeof(*map) + 30 * segment, unwind_memo_bytes);
	sqlite3_close(database);
	if (argc < 2 || strcmp(argv[1], "--check") != 0)
		return 0;
	return missed != 0 ? 1 : unmeasured != 0 ? 77 : 0;
}
