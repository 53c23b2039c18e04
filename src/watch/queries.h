/*
 * Runs of statements: from the first step of a top-level statement to its end
 * (done, an error, reset or finalize). The hooks, or the trace fall-back, say what
 * happens; here the open runs are kept, and the sampler and the query log told.
 *
 * What runs inside a statement's steps belongs to it: its samples are the statement's.
 * SQL that SQLite itself runs there (triggers, FTS5, VACUUM) is no more than that. SQL
 * that the host's code runs there (its functions and virtual tables) has runs of its
 * own besides, which name the outermost as their initial query: they are not sampled
 * under their own name, but have their exact times, and tell how many of the outer
 * one's samples were taken in them.
 */
#ifndef QUERYPROF_WATCH_QUERIES_H
#define QUERYPROF_WATCH_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/session.h"

struct run;
struct thread;

/* The session's settings may say now that its queries are sampled; its last query
 * has ended for good. */
void queries_watch(struct session *session);
void queries_unwatch(struct session *session);

/* No session samples and no run is open: hooks have nothing to do. Inline, for it is
 * all that the library costs a host with its timers off. */
extern uint32_t queries_watched_sessions __attribute__((visibility("hidden")));

static inline bool queries_idle(void)
{
	return __atomic_load_n(&queries_watched_sessions, __ATOMIC_RELAXED) == 0;
}

/* Around one sqlite3_step: true when the step belongs to a run, and then
 * queries_leave() must follow with the step's result. `frame` is the wrapper's: should
 * the step be left by a long jump, the thread's next call finds the stack shorter.
 * `caller` is the code that calls SQLite. */
struct query_step {
	struct run *run;
	struct thread *thread;
	/* Of a step inside another run's: what that has had so far. */
	bool is_nested, was_in_exec;
	struct run *outer; /* nested, too; NULL: none */
	uint64_t samples[TRACE_TYPES], weights[TRACE_TYPES];
};
bool queries_enter(struct query_step *step, sqlite3_stmt *stmt, const void *frame, const void *caller);
void queries_leave(const struct query_step *step, int rc);

/* Around sqlite3_exec(), which runs its statements for its caller. */
bool queries_begin_exec(const void *caller);
void queries_end_exec(bool outer);

/* Around the preparation of a statement, whose time is the query's, too: `text` as the
 * host gave it (UTF-8; NULL: not known), the result and the statement made. What SQLite itself runs meanwhile
 * has no runs. */
void queries_prepare(struct query_step *step, sqlite3 *db, const char *text, const void *frame);
void queries_prepared(struct query_step *step, int rc, sqlite3_stmt *stmt);

/* Resets the statement through `reset`, as part of its run if one is open, which
 * ends with it. Returns what `reset` returns. */
int queries_reset(sqlite3_stmt *stmt, int (*reset)(sqlite3_stmt *));

/* The same for a statement about to be finalized: does nothing and returns
 * SQLITE_OK when it has no open run. */
int queries_end(sqlite3_stmt *stmt, int (*reset)(sqlite3_stmt *));

/* The statement whose step gave the calling thread its newest row, NULL when
 * another step has ended since. */
sqlite3_stmt *queries_newest_row(void);

/* The statement, still alive, will be given up and freed without a call that the
 * hooks see: its run, if one is open, ends now. NULL: nothing. */
void queries_abandon(sqlite3_stmt *stmt);

/* The statement of `db` whose step the calling thread is in reads what the profiler
 * found, or sets it up: its time is the profiler's own, which is not sampled and not
 * logged. Nothing when the thread is in a step of another connection. */
void queries_disown(const sqlite3 *db);

/* The same for the statement of `db` that the calling thread is preparing. */
void queries_disown_prepared(const sqlite3 *db);

/* Follows the connection's statements by sqlite3_trace_v2 from now on, for hosts
 * whose steps cannot be hooked. Takes the connection's one trace slot, and calls what the
 * host would have there, with the events in `mask`; again sets that anew. A statement
 * counts as running while its connection's mutex is held by the thread; statements
 * stepped in turns on one thread are counted to the one that started last. */
void queries_trace(struct session *session, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                   void *context);

/* Whether the calling thread's newest query is followed by the trace. */
bool queries_traced(void);

/* The connection is being closed: its runs end without a line in the log. */
void queries_forget(struct session *session);

/* Statements that the calling thread runs between these two are ours, not the
 * host's: no runs. They nest. */
void queries_suspend(void);
void queries_resume(void);
bool queries_suspended(void);

/* The calling thread ends: so does the part of the runs that it had to do with. */
void queries_thread_ends(const struct thread *thread);

enum queries_counter {
	QUERIES_STARTED,
	QUERIES_LOGGED,    /* records handed to the ring */
	QUERIES_LOST,      /* ended where nobody saw it, without a line in the log */
	QUERIES_UNTRACKED, /* more statements open at once than can be told apart */
	QUERIES_COUNTERS,
};
uint64_t queries_counter(enum queries_counter which);

#endif
