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
#define PLUGIN WORKERS /* counts as one */
#define UNLOCKED 3     /* the other process's exit status: the file had no lock to give */
#define HANG_RUNS 20   /* of the host, while a write or a sync of the flusher hangs */

/* ThreadSanitizer keeps the parent's threads in a child, and ends a child whose new thread lies where one of
 * these did ("dup thread with used id"). */
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

/* What has happened, as far as the program sees it. */
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

/* What the program knows of its runs: written before one begins, and after it has ended. */
struct run_counts {
	_Atomic int64_t begun, ended;
};
extern struct run_counts counts[WORKERS + 1];

/* disk.c: a write or a sync of the flusher hangs; the host waited for one. */
extern atomic_bool is_hanging, host_waited;

/* What the disk is like, and whether the flusher may be waited for with the others outside of SQLite. */
extern atomic_bool disk_hangs, disk_is_full;
extern atomic_int forking;

/* False: the kernel does not let it be full, or hang. */
bool disk_begin(void);

void count_deed(enum deed deed);

void pause_us(unsigned us);

/* Around calls of SQLite, without others inside. */
void enter_sqlite(void);
void leave_sqlite(void);

/* Runs this program as another process, and waits for its exit status: 0 or UNLOCKED. */
int run_self(const char *what, const char *path, unsigned ms);

/* Threads, until it is over; `context` is a number. */
void *query_on(void *context);
void *disturb(void *context);

#endif
