/*
 * The trace fall-back: follows a connection's statements by sqlite3_trace_v2, for
 * hosts whose steps cannot be hooked.
 *
 * Its events tell when a statement starts and ends, not when it is left between two
 * steps. So a traced run's tag also names the owner of the connection's mutex: the
 * query runs while its thread holds that.
 */
#include "watch/runs.h"

#include "sampler/sampler.h"

/* The events that we need. */
#define OURS (SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE)

/* The run that the thread's newest event began. */
static __thread struct run *traced;

static void leave_traced(struct thread *thread)
{
	if (traced && thread)
		sampler_pop(thread);
	traced = NULL;
}

static void trace_started(struct session *session, sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *run;

	/* Held more than once by this thread: the statement runs inside another. */
	if (traced && session->mutex_owner && *session->mutex_owner == (int)thread->id &&
	    *session->mutex_count > 1)
		return;
	run = runs_find(stmt);
	if (run)
		return; /* prepared anew in the middle of its run */
	run = runs_begin(session, stmt, thread);
	if (!run)
		return;
	leave_traced(thread);
	__atomic_store_n(&run->mutex_owner, session->mutex_owner, __ATOMIC_RELAXED);
	runs_push(run, thread, NULL);
	traced = run;
}

/* SQLite tells the statement's result only after this event: sqlite3_errcode() is that of
 * an earlier call, maybe of another statement. So none is known. */
static void trace_finished(sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *run = runs_find(stmt);

	if (!run)
		return;
	if (run == traced)
		leave_traced(thread);
	runs_end(run, thread, SQLITE_OK);
}

static void follow(struct session *session, unsigned event, void *subject, void *detail)
{
	struct thread *thread;

	if (queries_suspended() || !(thread = sampler_thread()))
		return;
	if (event == SQLITE_TRACE_STMT) {
		/* Another text than the statement's, a comment: a trigger or SQL inside a
		 * statement that runs already. The statement's own may begin with one, too. */
		if (runs_wanted(session) && detail == sqlite3_sql(subject))
			trace_started(session, subject, thread);
	} else if (event == SQLITE_TRACE_PROFILE) {
		trace_finished(subject, thread);
	}
}

static int on_trace(unsigned event, void *context, void *subject, void *detail)
{
	struct session *session = context;

	/* The host's call went by us; what it calls next, our functions or tables, is of
	 * the same library. */
	host_current = session->library;
	if (event & OURS)
		follow(session, event, subject, detail);
	if (event & session->host_trace.mask)
		return session->host_trace.callback(event, session->host_trace.context, subject, detail);
	return 0;
}

void queries_trace(struct session *session, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                   void *context)
{
	session->host_trace.callback = callback;
	session->host_trace.context = context;
	session->host_trace.mask = mask;
	sqlite3_trace_v2(session->db, OURS | mask, on_trace, session);
}

void queries_forget(struct session *session)
{
	bool had_traced;

	if (traced && traced->session == session)
		leave_traced(sampler_thread());
	had_traced = runs_release_all(session);
	queries_unwatch(session);
	/* Another thread's handler may be looking at the mutex that goes now. */
	if (had_traced)
		sampler_quiesce();
}

bool queries_traced(void)
{
	return traced != NULL;
}

struct run *traced_run(void)
{
	return traced;
}
