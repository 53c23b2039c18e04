/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run begins, which text it has, and the key by which it is found. The next run of a statement begins
 * in the place of its last one: on the hot path, below, that is all that is left to do.
 */
#pragma once

#include "query/inspect.h"
#include "query/statement_stats.h"
#include "sqlite/library/host.h"
#include "sqlite/runs/runs.h"

/* Of what a run is, and in which call it begins. */
struct run_begin {
	struct session *session;
	struct thread *thread;
	sqlite3_stmt *stmt; /* NULL: of none yet */
	uint64_t owner;     /* the call's number */
	enum run_kind kind;
	bool is_private; /* the session is now */
};

/* Begins a run, and its clocks. NULL: the table is full (counted); otherwise runs_describe() or a
 * similar function must follow. run_begin_again() is the quicker way. */
struct run *run_begin(const struct run_begin *how);

/* Keeps an ended run for the statement that this preparation has made, which names it from now
 * on. NULL: the table is full. */
struct run *runs_keep_ended(struct run *preparation, sqlite3_stmt *stmt);

/* Outside its call: from now on another key finds the run, and it stays open. An operation is
 * found by its handle. A preparation, under the connection's mutex, is paused until the
 * statement's first step. It ends here if the table is full. */
void run_move(struct run *run, const void *key);

/* Finds the run's statement by its text, and its part by its bytecode if it has some, while they
 * certainly exist: at the end another thread may have prepared it again. */
void runs_name_statement(struct run *run);

/* The same of a preparation, by the name of the statement that it has made. */
void runs_name(struct run *run, const struct statement_name *name);

/* In a call that has the statement, which SQLite has prepared again since, so it has other bytecode. */
void runs_name_anew(struct run *run);

/* The number that the run has may belong to another statement now: finds it again. */
COLD_PATH void runs_name_again(struct run *run);

/* SQLite's counts of the run's statement until now. */
COLD_PATH void runs_read_counters(const struct run *run, int values[STATEMENT_COUNTERS]);

/* The same, either in SQLite's memory or in `values`. Read them one by one, because SQLite has
 * just written them: the processor delays a larger load that overlaps pending stores. */
HOT_INLINE const volatile int *runs_counters(const struct run *run, int values[STATEMENT_COUNTERS])
{
	if (__builtin_expect(run->counters != NULL, 1))
		return run->counters;
	runs_read_counters(run, values);
	return values;
}

/* Before waiting for the mutex, in a call that has the statement: a process that is killed there
 * leaves samples, and this announces the run to which they belong. */
void runs_announce(struct run *run);

/* It is more than prepared: it is published while open, if it takes long. */
static inline void runs_publish_if_open(struct run *run)
{
	run->query.publish_after_ns = run->settings.min_duration_ns;
}

/* Under the connection's mutex: describes the run of a statement. */
void runs_describe(struct run *run);

/* In a call that has the statement: whether the run that was found is the present one of its
 * statement, and not of one that was freed unseen at the same address. */
bool runs_is_current(const struct run *run);

/* Under the connection's mutex: takes the id that the user set for the session's next query. */
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

/* --- on the hot path ---------------------------------------------------------------------- */

/* Begins the statement's next run, and its clocks; it is visible immediately. The run has its text, its
 * number among the statements, its settings and its description from before; what another run may have
 * changed is checked, or written again. The session is private now. False: the run is of another session or
 * text, or the settings have changed. */
bool run_begin_again(struct run *run, struct session *session, const sqlite3_api_routines *api,
                     struct calling *calling, uint64_t owner, struct thread *thread);
