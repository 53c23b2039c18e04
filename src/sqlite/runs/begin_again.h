/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next run of a statement, in the place of its last one: what is left to do on the hot path. The run
 * has its text, its number among the statements, its settings and its description from before; all that
 * another run may have changed is checked, or written again.
 */
#ifndef QUERYPROF_SQLITE_RUNS_BEGIN_AGAIN_H
#define QUERYPROF_SQLITE_RUNS_BEGIN_AGAIN_H

#include <string.h>

#include "handover/storing.h"
#include "query/begin.h"
#include "query/inspect.h"
#include "sqlite/runs/begin.h"
#include "sqlite/runs/scan_counts.h"

/* In a call that has the statement, whose run has ended: whether the run is of this statement. */
HOT_INLINE bool run_is_same_text(const struct run *run, const sqlite3_api_routines *api)
{
	const char *text = api->sql(run->stmt);

	return text && text == run->query.text && query_is_marked(&run->query);
}

/* Only this thread begins runs in its table. */
HOT_INLINE void run_count_started(struct calling *calling)
{
	__atomic_store_n(&calling->runs, calling->runs + 1, __ATOMIC_RELAXED);
}

HOT_INLINE void run_count_private(struct session *session)
{
	__atomic_store_n(&session->private_runs, session->private_runs + 1, __ATOMIC_RELAXED);
}

HOT_INLINE void run_read_at_start(struct run *run)
{
	/* SQLite wrote them long ago. */
	if (__builtin_expect(run->counters != NULL, 1)) {
		memcpy(run->at_start, (const int *)run->counters, sizeof(run->at_start));
		return;
	}
	runs_read_counters(run, run->at_start);
	scan_counts_begin(run);
}

/* Begins the statement's next run, and its clocks; it is visible immediately. The session is private now.
 * False: the run is of another session or text, or the settings have changed. */
HOT_INLINE bool run_begin_again(struct run *run, struct session *session, const sqlite3_api_routines *api,
                                struct calling *calling, uint64_t owner, struct thread *thread)
{
	if (!runs_is_of_session(run, session) || !runs_has_settings_of(run, session) ||
	    api->db_handle(run->stmt) != session->db || !run_is_same_text(run, api))
		return false;
	__atomic_store_n(&run->owner, owner, __ATOMIC_RELAXED);
	run_count_private(session);
	run->prepared = false;
	run->query.query_id = NULL;
	run->query.rows = 0;
	storing_begin(); /* samples will be written */
	run_count_started(calling);
	run_read_at_start(run);
	/* A statement that has executed less than before is another one, whose preparation was not seen; or
	 * the host has reset the counter. */
	if (__builtin_expect(run->at_start[COUNTED_VM_STEPS] < run->vm_steps, 0))
		runs_name_again(run);
	/* Relaxed: a change now takes effect at the next run. */
	run->query.counts.labels = __atomic_load_n(&session->labels.number, __ATOMIC_RELAXED);
	query_begin(&run->query, thread, true);
	if (__builtin_expect(session->settings.query_id[0], 0)) {
		runs_acquire_set_query_id(run);
		run->query.open->has_id = true;
		query_write_open_id(&run->query);
	}
	query_show_again(&run->query);
	return true;
}

#endif
