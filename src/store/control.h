/*
 * What the parts of the store share: the control block that API calls and the
 * flusher meet at (store.c, flusher.c), and the pool of readers (reader.c).
 */
#ifndef QUERYPROF_STORE_CONTROL_H
#define QUERYPROF_STORE_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "store/file/database.h"
#include "store/store.h"

struct ring;

/* Where and how to store; `path` NULL: a temporary file. */
struct settings_of_store {
	char *path; /* absolute, malloc'ed */
	int64_t max_bytes, flush_interval_ns;
	store_chore chore;
};

enum request { REQUEST_NONE, REQUEST_OPEN, REQUEST_CONFIGURE };

struct control {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC; whatever anybody waits for here */

	/* Set by API calls, under the lock. */
	struct ring *ring;
	struct settings_of_store settings;
	bool initialised, ending;
	bool thread_running;
	pthread_t thread;
	int64_t retry_thread_at;
	pid_t owner;
	bool stop;
	bool leader_ends;      /* see store_leader_ends() */
	bool has_watch;        /* a thread waits for the host's last one */
	unsigned pauses;       /* forks under way */
	uint64_t drain_target; /* ring position that somebody waits for */
	enum request request;  /* one at a time */
	uint64_t request_number, request_done;
	struct settings_of_store wanted;
	int request_code;
	char *request_error;
	bool reading_wanted; /* a reading thread */

	/* Set by the flusher, under the lock. */
	bool parked;      /* holds no connection and waits for the fork's end */
	bool finished;    /* has stopped */
	uint64_t drained; /* ring position up to which all is settled */
	char *open_path;  /* NULL: no file is open */
	uint64_t epoch;   /* of the open file; changes with every file */
	char *error;

	/* The private SQLite must not be used any more: it is in an unknown state. */
	bool disabled;
};

extern struct control store_control;

extern uint64_t store_counters[STORE_COUNTERS]; /* relaxed atomics */

static inline void store_count(enum store_counter which, uint64_t number)
{
	__atomic_fetch_add(&store_counters[which], number, __ATOMIC_RELAXED);
}

/* Epoch of the open file, 0 when there is none. */
uint64_t control_epoch(void);

/* The file that readers may open, as a copy, and its epoch; NULL: none is open. An
 * explicit file that is not open yet is opened. False: it cannot be, `*error`. */
bool control_reading_path(char **path, uint64_t *epoch, char **error);

int64_t control_now_ns(void); /* CLOCK_MONOTONIC */

/* That clock's time so many ms from now; at once for a negative number. */
struct timespec control_deadline(int timeout_ms);

/* A thread of ours, which takes no signals: they are the host's. 0 or errno. */
int control_make_thread(pthread_t *thread, void *(*start)(void *));

/* Has the flusher start the reading thread, and waits for that. */
void control_start_reading(void);

/* --- reader.c ---------------------------------------------------------------- */

/* Closes the idle connections and waits `timeout_ms` for the busy ones; keeps new
 * ones from being opened until readers_resume(). False: some are busy still. */
bool readers_pause(int timeout_ms);
void readers_resume(void);
void readers_reset_in_child(void);

/* Closes the idle connections (they are of a file that is in use no more). */
void readers_close_idle(void);

/* On the flusher's thread, with which it shares the table: the reading thread runs, if
 * one can be had. */
void readers_start(void);

/* On the flusher's thread: no connection of the reading thread's is open afterwards, and
 * it has ended. False: it hangs in the file system. */
bool readers_end(int timeout_ms);

bool readers_have_thread(void);

#endif
