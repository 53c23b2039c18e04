/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/trace_callback.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/unwind/stack_copy.h"
#include "sqlite/runs/begin.h"
#include "sqlite/runs/end.h"
#include "sqlite/session/watch_sql.h"
#include "timers/threads.h"

/* The events that are needed. */
#define OURS (SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE)

static void detach_event_run(struct calling *calling)
{
	struct run *run = calling->event_run;

	calling->event_run = NULL;
	/* The run may have ended on another thread. */
	if (run && run->tag_thread == thread_current)
		runs_pop(run);
}

/* Held more than once by this thread: the statement runs inside another. */
static bool is_nested(const struct session *session, const struct calling *calling,
                      const struct thread *thread)
{
	return calling->event_run && session->mutex_owner && *session->mutex_owner == (int)thread->id &&
	       *session->mutex_count > 1;
}

/* SQLite holds the connection's mutex in its events. */
static void start(struct session *session, sqlite3_stmt *stmt, struct calling *calling, struct thread *thread)
{
	uint64_t number = calling_number(calling);
	bool is_busy;
	struct run *run;

	if (is_nested(session, calling, thread))
		return;
	run = runs_acquire(stmt, number, &is_busy);
	if (run)
		runs_give_back(run); /* prepared again in the middle of its run */
	if (run || is_busy)
		return;
	run = run_begin(
		&(struct run_begin){ .session = session, .thread = thread, .stmt = stmt, .owner = number });
	if (!run)
		return;
	runs_describe(run);
	detach_event_run(calling);
	__atomic_store_n(&run->mutex_owner, session->mutex_owner, __ATOMIC_RELAXED);
	runs_push(run, thread, NULL);
	calling->event_run = run;
	runs_give_back(run);
}

/* SQLite publishes the statement's result only after this event: sqlite3_errcode() belongs to an
 * earlier call, possibly of another statement. So the result is unknown. */
static void finish(sqlite3_stmt *stmt, struct calling *calling, struct thread *thread)
{
	bool is_busy;
	struct run *run = runs_acquire(stmt, calling_number(calling), &is_busy);

	if (!run)
		return;
	if (run == calling->event_run)
		calling->event_run = NULL;
	runs_pop(run);
	query_leave(&run->query, thread);
	run_end(run, (struct run_result){ .thread = thread, .is_locked = true });
}

static void follow(struct session *session, unsigned event, void *subject, void *detail,
                   struct calling *calling)
{
	const struct call_slot *slot = calling_find(calling, __builtin_frame_address(0));
	struct thread *thread;

	if (slot && slot->is_quiet)
		return;
	if (event == SQLITE_TRACE_STMT && detail == sqlite3_sql(subject) && watch_sql() &&
	    watch_sql()->run_pragma(session, detail))
		return;
	if (!(thread = sampler_thread()))
		return;
	if (event == SQLITE_TRACE_STMT) {
		/* A text other than the statement's, a comment: a trigger or SQL inside a
		 * statement that already runs. The statement's own text may also begin with a
		 * comment. */
		if (session_wants_samples(&session->settings) && detail == sqlite3_sql(subject))
			start(session, subject, calling, thread);
	} else if (event == SQLITE_TRACE_PROFILE) {
		finish(subject, calling, thread);
	}
}

/* The session may have ended before the connection, and its memory may belong to another one. */
static bool is_of(const struct session *session, unsigned event, void *subject)
{
	const sqlite3 *db = session->db;

	if (!db)
		return false;
	return db == (event == SQLITE_TRACE_CLOSE ? (sqlite3 *)subject
	                                          : host_api(session->library)->db_handle(subject));
}

static int on_callback(unsigned event, void *context, void *subject, void *detail)
{
	struct session *session = context;
	struct calling *calling = calling_here();

	if (!is_of(session, event, subject))
		return 0;
	/* queryprof did not see the host's call; what it calls next, queryprof's functions or
	 * tables, belongs to the same library. */
	if (calling)
		calling->library = session->library;
	if (calling && (event & OURS))
		follow(session, event, subject, detail, calling);
	if (event & session->host_callback.mask)
		return session->host_callback.callback(event, session->host_callback.context, subject,
		                                       detail);
	return 0;
}

void trace_callback_set(struct session *session, unsigned mask,
                        int (*callback)(unsigned, void *, void *, void *), void *context)
{
	session->host_callback.callback = callback;
	session->host_callback.context = context;
	session->host_callback.mask = mask;
	sqlite3_trace_v2(session->db, OURS | mask, on_callback, session);
}

#if defined(__GLIBC__)
/* Finds the owner and the depth inside the connection's mutex, if it is the usual one: a pthread
 * mutex is its first member. Accepted only after a trial, because a host's own mutex may be
 * anything, even unmapped memory. */
static void read_mutex(struct session *session)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(session->db);
	const pthread_mutex_t *inner = (const pthread_mutex_t *)mutex;
	pthread_mutex_t before, now;
	bool is_known;

	if (!mutex)
		return;
	sqlite3_mutex_enter(mutex);
	is_known = stack_copy_part((uintptr_t)inner, &before, sizeof(before));
	sqlite3_mutex_enter(mutex);
	is_known = is_known && stack_copy_part((uintptr_t)inner, &now, sizeof(now)) &&
	           now.__data.__owner == (int)syscall(SYS_gettid) &&
	           now.__data.__count == before.__data.__count + 1;
	if (is_known) {
		session->mutex_owner = &inner->__data.__owner;
		session->mutex_count = &inner->__data.__count;
	}
	sqlite3_mutex_leave(mutex);
	sqlite3_mutex_leave(mutex);
}
#else
/* musl marks that others wait in the word of the owner, so it is not known. */
static void read_mutex(struct session *session)
{
	(void)session;
}
#endif

void session_set_trace_callback(struct session *session)
{
	read_mutex(session);
	session->has_trace_callback = true;
	trace_callback_set(session, 0, NULL, NULL);
}

bool trace_callback_runs(void)
{
	const struct calling *calling = calling_here();

	return calling && calling->event_run;
}

void trace_callback_end(const struct session *session)
{
	struct calling *calling = session->has_trace_callback ? calling_here() : NULL;

	if (calling && calling->event_run && calling->event_run->session == session)
		detach_event_run(calling);
}
