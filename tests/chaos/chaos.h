/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the actors (actors.c) and the checks of the invariants (chaos.c) share.
 */
#ifndef TESTS_CHAOS_H
#define TESTS_CHAOS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../watch/host.h"

#define WORKERS 4
#define PLUGIN WORKERS /* the plugin counts as one worker */
#define UNLOCKED 3     /* the other process's exit status if it could not lock the file */
#define HANG_RUNS 20   /* queries of the host while a write or a sync of the flusher hangs */

/* In a child, ThreadSanitizer keeps the parent's threads. It ends the child if a new thread has the address
 * of one of these ("dup thread with used id"). */
#ifdef __SANITIZE_THREAD__
#define CAN_FORK false
#else
#define CAN_FORK true
#endif

extern char trace[2][200];
extern uint64_t chaos_seed;
extern atomic_bool over;
extern atomic_int failures;

#define CHECK(condition, ...)                                                                                \
	do {                                                                                                 \
		if (!(condition) && atomic_fetch_add(&failures, 1) < 20) {                                   \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                      \
			fprintf(stderr, __VA_ARGS__);                                                        \
			fprintf(stderr, "\n");                                                               \
		}                                                                                            \
	} while (0)

/* The events that the program has seen. */
enum deed {
	ZOMBIE,
	SHORT_THREAD,
	PLUGIN_LOADED,
	FORKED,
	FORK_QUERIED,
	EXECUTED,
	LOCKED,
	SIZE_LIMITED,
	FULL,
	HUNG,
	SETTING_CHANGED,
	RENAMED,
	REMOVED,
	DEEDS
};

extern atomic_int deeds[DEEDS];

/* The program's own counts of its runs: `begun` is counted before a run begins, `ended` after it has
 * ended. */
struct run_counts {
	_Atomic int64_t begun, ended;
};
extern struct run_counts counts[WORKERS + 1];

/* disk.c: a write or a sync of the flusher hangs; the host waited for one. */
extern atomic_bool is_hanging, host_waited;

/* The state of the disk. `forking`: a thread may wait for the flusher while the other threads are outside of
 * SQLite. */
extern atomic_bool disk_hangs, disk_is_full;
extern atomic_int forking;

/* False: the kernel does not permit to simulate a full or hanging disk. */
bool disk_begin(void);

void count_deed(enum deed deed);

void pause_us(unsigned us);

/* Enclose calls of SQLite; must not be nested. */
void enter_sqlite(void);
void leave_sqlite(void);

/* Runs this program as another process, and waits for its exit status: 0 or UNLOCKED. */
int run_self(const char *what, const char *path, unsigned ms);

/* Thread functions that run until it is over; `context` is a number. */
void *query_on(void *context);
void *disturb(void *context);

#endif
