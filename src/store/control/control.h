/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that the host's threads and the store's threads share: one block, one lock, and one condition for
 * all waits. A process has one such block, because it has one ring and one flusher.
 *
 *              store_init()             first record
 *   STORE_NONE ────────────▶ STORE_READY ────────────▶ STORE_RUNNING ◀──▶ STORE_PARKED
 *       ▲                                                    │      fork under way
 *       │                                                    │ store_shutdown()
 *       │          joined                   all is stored    ▼          seen
 *       └──────────────────── STORE_FINISHED ◀──── STORE_FINISHING ◀──── STORE_STOPPING
 *
 * If another process reads the ring, store_init() leads to STORE_ELSEWHERE, and store_shutdown() back.
 *
 * In a forked child, RUNNING and all states after it become READY, because the child has no flusher. If the
 * parent could not close its connections before the fork, the child never uses its private SQLite
 * (`no_file`): its flusher counts the losses. If the reading thread hangs in the file system at the end, the
 * process becomes STORE_DISABLED: its SQLite is in an unknown state, and nothing is stored any more.
 * control_happens() implements all of that in one switch.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "store/control/waiting.h"

struct ring;
struct sqlite3;

/* Deferrable work on the trace file. The flusher does it after a flush, in slices of a few ms, as long as no
 * thread waits for the flusher. `db` is the flusher's connection, without a transaction, and `file`
 * identifies the file. True: there is more to do. */
typedef bool (*store_chore)(struct sqlite3 *db, int64_t file);

/* Where and how to store; `path` NULL: in a temporary file. */
struct settings_of_store {
	char *path; /* absolute, malloc'ed */
	int64_t max_bytes, flush_interval_ns;
	bool does_chores;
	bool is_elsewhere;
};

enum store_state {
	STORE_NONE,      /* no ring */
	STORE_ELSEWHERE, /* another process reads the ring, and stores */
	STORE_READY,     /* no thread yet */
	STORE_RUNNING,   /* the flusher stores */
	STORE_PARKED,    /* the flusher holds no connection and waits for the end of a fork */
	STORE_STOPPING,  /* the flusher has been asked to store the rest and end */
	STORE_FINISHING, /* it stores the rest */
	STORE_FINISHED,  /* it has ended, and can be joined */
	STORE_DISABLED,  /* permanently without a thread */
};

/* Events of the store. control.c defines the resulting states. */
enum store_event {
	EVENT_INIT,           /* there is a ring, and no thread yet */
	EVENT_INIT_ELSEWHERE, /* there is a ring that another process reads */
	EVENT_THREAD,         /* the flusher was created, for the first record or a request */
	EVENT_FORK,           /* the flusher has closed its connections for a fork */
	EVENT_FORK_OVER,      /* in the parent */
	EVENT_CHILD,          /* in the child, which has no flusher */
	EVENT_STOP,           /* the flusher is asked to end */
	EVENT_STOP_SEEN,      /* it begins to store the rest */
	EVENT_STORED,         /* it has stored everything, and ends */
	EVENT_FREED,          /* everything is freed, and there is no ring */
	EVENT_READER_HANGS,   /* the same, but a reading thread hangs in the file system */
	EVENT_FORBIDDEN,      /* the host forbids the store's threads */
	EVENT_LEADER_ENDS,    /* the host's first thread ends */
	EVENT_WATCH,          /* the thread that waits for the last thread was created */
	EVENT_WATCH_OVER,     /* that thread ends */
	EVENT_ALLOWED, /* the host allows them: it did not install its filter; no reading thread hangs */
};

/* After the host's first thread has ended, a thread of the library waits until the last one ends
 * (last_thread.h).
 *
 *              leader ends              made
 *   WATCH_NONE ───────────▶ WATCH_WANTED ────▶ WATCH_RUNS
 *       ▲                                          │ confined; in a forked child
 *       └──────────────────────────────────────────┘ */
enum watch_state { WATCH_NONE, WATCH_WANTED, WATCH_RUNS };

enum request { REQUEST_NONE, REQUEST_OPEN, REQUEST_CONFIGURE };

struct store_thread {
	pthread_t thread;
	void (*work)(void);
	uint32_t is_done; /* atomic, a futex */
};

struct control {
	struct mutex lock;
	struct condition changed;

	/* Written under the lock; store_start() reads it without the lock. */
	enum store_state state;

	store_chore chore; /* NULL: none */

	/* Written by API calls, under the lock. */
	struct ring *ring; /* NULL: none, in any state */
	struct settings_of_store settings;
	bool (*start_thread)(void); /* READY to RUNNING; called with the lock held */
	struct store_thread thread;
	int64_t retry_thread_at;
	enum watch_state watch; /* atomic */
	unsigned pauses;        /* forks under way */
	uint64_t drain_target;  /* the ring position that a caller waits for */
	enum request request;   /* one at a time */
	uint64_t request_number, request_begun, request_done;
	struct settings_of_store wanted;
	int request_code;
	char *request_error;
	bool reading_wanted; /* a caller waits for the reading thread */

	/* Written by the flusher, under the lock. */
	uint64_t drained;    /* the ring position up to which everything is stored or lost */
	bool waits_for_file; /* atomic; written without the lock */
	char *open_path;     /* NULL: no file is open */
	uint64_t epoch;      /* of the open file; each file has a different one */
	char *error;
	bool is_open_at_fork; /* a child can neither open the file nor use the open one */

	/* Why this process must not use its SQLite; set permanently in a forked child. NULL: it may. */
	const char *no_file;

	/* The process ends: threads of the store stay after their work. */
	bool threads_stay; /* atomic */

	/* The host has forbidden calls that the store's threads need. They do not exist until it allows those
	 * calls again. */
	bool is_confined; /* atomic */
};

extern struct control store_control;

void control_lock(void) ACQUIRES(store_control.lock);
void control_unlock(void) RELEASES(store_control.lock);

/* Waits until something changes. Returns the result of waiting_goes_on(). */
bool control_wait(struct waiting *waiting) REQUIRES(store_control.lock);

/* Changes the state and wakes all waiting threads. */
void control_happens(enum store_event event) REQUIRES(store_control.lock);

/* Whether the flusher takes records from the ring; whether its thread exists. */
bool control_is_live(void) REQUIRES(store_control.lock);
bool control_has_thread(void) REQUIRES(store_control.lock);

/* Ensures that the flusher runs. False: it cannot. */
bool control_start_thread(void) REQUIRES(store_control.lock);

/* The flusher reports that another process has the file, or that it has stored something. */
static inline void control_wait_for_file(bool waits)
{
	__atomic_store_n(&store_control.waits_for_file, waits, __ATOMIC_RELAXED);
}

int64_t control_now_ns(void); /* CLOCK_MONOTONIC */

/* Starts a thread of the store with all signals blocked, because signals belong to the host. 0 or errno. */
int control_make_thread(struct store_thread *thread, void (*work)(void));

/* Waits until the thread's work is done, and for the thread's end unless threads stay. At its very end a
 * thread runs code of the host or its libraries; if that takes too long, the wait is given up. */
void control_join_thread(struct store_thread *thread);

/* At the end of the process, before the shutdown of the store: a thread that has finished its work then waits
 * for the end of the process. If the thread ended, it would run code of the host (destructors, free()) after
 * the host's destructors. */
void control_keep_threads(void);

/* Hands the request to the flusher and waits for the response. Takes ownership of `wanted`. A QP_ code, with
 * a sentence in `*error`. */
int control_request(enum request request, struct settings_of_store *wanted, struct waiting *waiting,
                    char **error);

/* Epoch of the open file, 0 if there is none. */
uint64_t control_epoch(void);

/* The path of the file that readers may open, as a copy, and its epoch. NULL: no file is open. Opens a file
 * that was only named. False: opening failed, see `*error`. */
bool control_reading_path(char **path, uint64_t *epoch, struct waiting *waiting, char **error);
