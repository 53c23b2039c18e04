/*
 * The table of open runs: what queries.c (hooks) and traced.c (trace fall-back) share.
 *
 * A run is found by its statement in a table that is never unmapped: the handler
 * counts in it, on whatever thread the statement is stepped. SQLite lets one
 * thread at a time work on a statement, so an entry needs no lock; only claiming
 * one is a compare-and-swap.
 */
#ifndef QUERYPROF_WATCH_RUNS_H
#define QUERYPROF_WATCH_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/queries.h"
#include "query/query.h"
#include "watch/session.h"

/* What SQLite counts for a statement over all its runs; read at both ends. */
#define STATEMENT_COUNTERS 4

struct run {
	struct query_run query;
	sqlite3_stmt *stmt; /* NULL while it is being prepared, and for calls without one */
	struct session *session;
	const volatile int *mutex_owner; /* what a traced run's tag points to */
	bool own;                        /* the profiler's, see queries_disown() */
	bool prepared;                   /* and not stepped yet: the run is paused */
	int at_start[STATEMENT_COUNTERS];
	char query_id[QUERY_ID_MAX + 1]; /* the user's own */
	char label[128];                 /* "", or the text of a call without a statement */
};

/* The open run of a statement, or of what a call without one has made; NULL: none. */
struct run *runs_find(const void *key);

/* Begins the run of a statement, and its clocks. NULL when the table has no room
 * (counted). */
struct run *runs_begin(struct session *session, sqlite3_stmt *stmt, struct thread *thread);

/* The same for a statement about to be prepared. `key` is an address that no other
 * run has meanwhile. */
struct run *runs_begin_prepare(struct session *session, const void *key, const char *text,
                               struct thread *thread);

/* The same for a call without a statement; its label and database are to be filled in. */
struct run *runs_begin_call(struct session *session, const void *key, struct thread *thread);

/* The run is found by another key from now on. It ends here when the table has no room. */
void runs_rename(struct run *run, const void *key);

/* The statement has been prepared: its run is paused until the first step, and the
 * statement's from now on. It ends here when the table has no room. */
void runs_prepared(struct run *run, sqlite3_stmt *stmt, struct thread *thread);

/* Its first step. */
void runs_first_step(struct run *run, struct thread *thread);

/* Ends a run, with a line in the log if it is worth one. */
void runs_end(struct run *run, struct thread *thread, int rc);

/* Ends a run without a line. */
void runs_release(struct run *run);

/* Ends all runs of a session without a line. True when one of them was traced. */
bool runs_release_all(const struct session *session);

bool runs_worth_logging(const struct run *run);

/* queries.c, for calls.c: whether the thread is in no run, and SQLite is not busy with
 * what is its own; and to put a run on the thread's stack of queries. */
bool queries_at_top(const void *frame);
void queries_enter_run(struct run *run, struct thread *thread, const void *frame);
void queries_leave_run(struct thread *thread);

/* traced.c: the run that the thread's newest trace event began, NULL: none. */
struct run *traced_run(void);

/* The thread works for the run from here to sampler_pop(). `frame` as in query_tag. */
void runs_push(struct run *run, struct thread *thread, const void *frame);

/* Whether the session's queries are to be sampled. */
bool runs_wanted(const struct session *session);

void runs_count(enum queries_counter which);

#endif
