/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run begins, which text it has, and the key by which it is found.
 */
#ifndef QUERYPROF_SQLITE_RUNS_BEGIN_H
#define QUERYPROF_SQLITE_RUNS_BEGIN_H

#include "sqlite/library/host.h"
#include "sqlite/runs/runs.h"

/* Of what a run is, and in which call it begins. */
struct run_begin {
	struct session *session;
	const struct host_library *library; /* whose call it is */
	struct thread *thread;
	sqlite3_stmt *stmt; /* NULL: of none yet */
	uint64_t owner;     /* the call's number */
	enum run_kind kind;
	bool is_private; /* the session is now */
};

struct run *runs_begin_anew(const struct run_begin *how);
struct run *runs_begin_again(struct run *run, struct session *session, const sqlite3_api_routines *api,
                             uint64_t owner, struct thread *thread);

/* Begins a run, and its clocks. `slot` NULL: it is found, or one that is free; NULL when the table has no
 * room (counted), and else runs_describe() or the like has to follow. Or it is the statement's, has ended,
 * and begins anew, shown at once, on a private session; NULL when it is another session's or of another text,
 * or the settings have changed. */
HOT_INLINE struct run *run_begin(struct run *slot, struct run_begin how)
{
	return slot ? runs_begin_again(slot, how.session, host_api(how.library), how.owner, how.thread)
	            : runs_begin_anew(&how);
}

/* Leaves a run that has ended for the statement that this preparation has made, and is named after from now
 * on. NULL: there is no room. */
struct run *runs_leave_ended(struct run *preparation, sqlite3_stmt *stmt);

/* Outside of its call: the run is found by another key from now on, and stays open. An operation is shown by
 * its handle. A preparation, under the connection's mutex, is paused until the statement's first step. It
 * ends here when the table has no room. */
void run_move(struct run *run, const void *key);

/* Finds the statement of the run by its text, and the part of it by the program of `stmt` (NULL: none), while
 * they are there for sure: at the end another thread may have prepared it anew. */
void runs_name_statement(struct run *run, const sqlite3_stmt *stmt);

/* In a call that has the statement, which SQLite has prepared anew since: it has another program. */
void runs_name_anew(struct run *run);

/* SQLite's counts of the run's statement until now. */
COLD_PATH void runs_read_counters(const struct run *run, int values[STATEMENT_COUNTERS]);

/* The same: where SQLite has them, or in `values`. To be read one by one, as SQLite has just written them:
 * the processor waits for stores that a larger load has parts of. */
HOT_INLINE const volatile int *runs_counters(const struct run *run, int values[STATEMENT_COUNTERS])
{
	if (__builtin_expect(run->counters != NULL, 1))
		return run->counters;
	runs_read_counters(run, values);
	return values;
}

/* Before the mutex is waited for, in a call that has the statement: a process that is killed there leaves
 * samples, and this announces the run that they are of. */
void runs_announce(struct run *run);

/* It is more than prepared: it is published while it is open, if it lasts. */
static inline void runs_publish_if_open(struct run *run)
{
	run->query.publish_after_ns = run->settings.min_duration_ns;
}

/* Under the connection's mutex: what the run of a statement says of itself. */
void runs_describe(struct run *run);

/* In a call that has the statement: whether the run that was found is the present one of its
 * statement, and not of one that was freed unseen at the same address. */
bool runs_is_current(const struct run *run);

/* Under the connection's mutex: takes the user's own id for the session's next query. */
COLD_PATH void runs_acquire_set_query_id(struct run *run);

static inline void runs_acquire_query_id(struct run *run)
{
	if (__builtin_expect(run->session->settings.query_id[0], 0))
		runs_acquire_set_query_id(run);
}

/* The same for an operation. Its text and its database are copied. */
void runs_announce_operation(struct run *run, const char *label);
void runs_describe_operation(struct run *run, const char *database);

/* The handle goes: no call finds the run any more. */
void runs_hide_key(struct run *run);

#endif
