/*
 * What the hooks tell: steps, resets, ends and preparations of statements.
 */
#include "watch/runs.h"

#include "sampler/sampler.h"

uint32_t queries_watched_sessions;

/* The run whose step, end or preparation this thread is in. */
static __thread struct run *running;
static __thread const void *running_frame; /* of the hook that it is in; NULL: not known */
static __thread uint32_t running_nesting;  /* queries on the thread before it */
static __thread struct run *nested;        /* the innermost one inside that, NULL: none */
static __thread sqlite3_stmt *newest_row;  /* whose step gave the newest row */
static __thread bool in_exec;              /* of the host's, inside a step: see queries_begin_exec() */
static __thread unsigned suspended;

void queries_watch(struct session *session)
{
	if (runs_wanted(session) && !__atomic_exchange_n(&session->watched, true, __ATOMIC_RELAXED))
		__atomic_add_fetch(&queries_watched_sessions, 1, __ATOMIC_RELAXED);
}

void queries_unwatch(struct session *session)
{
	if (__atomic_exchange_n(&session->watched, false, __ATOMIC_RELAXED))
		__atomic_sub_fetch(&queries_watched_sessions, 1, __ATOMIC_RELAXED);
}

void queries_enter_run(struct run *run, struct thread *thread, const void *frame)
{
	running_nesting = thread->nesting;
	running_frame = frame;
	runs_push(run, thread, frame);
	running = run;
	nested = NULL;
}

void queries_leave_run(struct thread *thread)
{
	__atomic_store_n(&running->query.working, 0, __ATOMIC_RELAXED);
	running = NULL;
	sampler_pop(thread);
}

/* Whether the call is made inside a step, a preparation or an end of ours. */
static bool is_inside(const void *frame)
{
	struct thread *thread = thread_current;

	if (!running || !thread || running_nesting >= QUERY_NESTING || thread->nesting <= running_nesting)
		return running != NULL;
	/* A call in the very frame of the one that was left is behind it, too. */
	if (!query_tag_was_left(&thread->queries[running_nesting], &thread->stack, (uintptr_t)frame + 1))
		return true;
	while (thread->nesting > running_nesting)
		sampler_pop(thread);
	/* Its statement may go on, or have gone: the run is not told from another. */
	runs_count(QUERIES_LOST);
	runs_release(running);
	running = nested = NULL;
	in_exec = false;
	suspended = 0;
	return false;
}

bool queries_at_top(const void *frame)
{
	return !is_inside(frame) && !suspended;
}

/* The open run of a statement about to be stepped, NULL when it has none. */
static struct run *continued_run(const struct session *session, sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *run = runs_find(stmt);

	if (!run)
		return NULL;
	if (run->session == session && run->stmt == stmt) {
		if (sqlite3_stmt_busy(stmt)) {
			query_continue(&run->query, thread);
			return run;
		}
		if (run->prepared) {
			runs_first_step(run, thread);
			return run;
		}
	}
	/* It ended where we did not see it; the statement may be another by now, in the
	 * same place. */
	runs_count(QUERIES_LOST);
	runs_release(run);
	return NULL;
}

/* Inside a step: is it the host's code that runs SQL there, or SQLite's own? */
static bool is_host(const void *caller)
{
	return in_exec || !host_is_within(host_library(), caller);
}

bool queries_begin_exec(const void *caller)
{
	bool outer = in_exec;

	in_exec = running && is_host(caller);
	return outer;
}

void queries_end_exec(bool outer)
{
	in_exec = outer;
}

/* The thread's outermost run goes on counting; what it counts meanwhile is the nested
 * one's, too. */
static void enter_nested(struct query_step *step)
{
	const struct query_counts *counts = &running->query.counts;

	for (int type = 0; type < TRACE_TYPES; type++) {
		step->samples[type] = __atomic_load_n(&counts->samples[type], __ATOMIC_RELAXED);
		step->weights[type] = __atomic_load_n(&counts->weights[type], __ATOMIC_RELAXED);
	}
	step->was_in_exec = in_exec;
	in_exec = false;
	step->outer = nested;
	nested = step->run;
	__atomic_store_n(&step->run->query.working, step->thread->id, __ATOMIC_RELAXED); /* only to be seen */
}

static void leave_nested(const struct query_step *step)
{
	const struct query_counts *counts = &running->query.counts;
	struct query_counts *own = &step->run->query.counts;

	for (int type = 0; type < TRACE_TYPES; type++) {
		own->samples[type] +=
			__atomic_load_n(&counts->samples[type], __ATOMIC_RELAXED) - step->samples[type];
		own->weights[type] +=
			__atomic_load_n(&counts->weights[type], __ATOMIC_RELAXED) - step->weights[type];
	}
	in_exec = step->was_in_exec;
	nested = step->outer;
	__atomic_store_n(&step->run->query.working, 0, __ATOMIC_RELAXED);
}

bool queries_enter(struct query_step *step, sqlite3_stmt *stmt, const void *frame, const void *caller)
{
	struct session *session;
	bool samples, has_runs;

	step->is_nested = is_inside(frame);
	if (suspended || !stmt || (step->is_nested && (running->own || !is_host(caller))))
		return false;
	session = session_follow(sqlite3_db_handle(stmt));
	if (!session || session->traced)
		return false;
	samples = runs_wanted(session);
	has_runs = __atomic_load_n(&session->open_runs, __ATOMIC_RELAXED) > 0;
	if (!samples && !has_runs) {
		queries_unwatch(session);
		return false;
	}
	step->thread = sampler_thread();
	if (!step->thread)
		return false;
	step->run = has_runs ? continued_run(session, stmt, step->thread) : NULL;
	if (!step->run && samples)
		step->run = runs_begin(session, stmt, step->thread);
	if (!step->run)
		return false;
	if (step->is_nested)
		enter_nested(step);
	else
		queries_enter_run(step->run, step->thread, frame);
	return true;
}

void queries_leave(const struct query_step *step, int rc)
{
	newest_row = NULL;
	if (step->is_nested)
		leave_nested(step);
	else
		queries_leave_run(step->thread);
	if (rc == SQLITE_ROW) {
		step->run->query.rows++;
		newest_row = step->run->stmt;
	} else {
		runs_end(step->run, step->thread, rc);
	}
}

/* The statement's open run, when its end is ours to see on this thread. */
static struct run *run_to_end(sqlite3_stmt *stmt)
{
	struct session *session;
	struct run *run;

	if (queries_idle() || suspended || !stmt)
		return NULL;
	session = session_of(sqlite3_db_handle(stmt));
	if (!session || session->traced || !__atomic_load_n(&session->open_runs, __ATOMIC_RELAXED))
		return NULL;
	run = runs_find(stmt);
	return run && run != running && run->stmt == stmt ? run : NULL;
}

sqlite3_stmt *queries_newest_row(void)
{
	return newest_row;
}

void queries_abandon(sqlite3_stmt *stmt)
{
	struct run *run = run_to_end(stmt);
	struct thread *thread = run ? sampler_thread() : NULL;

	if (thread)
		runs_end(run, thread, SQLITE_ABORT);
}

void queries_disown(const sqlite3 *db)
{
	struct run *run = nested ? nested : running ? running : traced_run();
	struct thread *thread = run && !run->own && run->session->db == db ? sampler_thread() : NULL;

	if (!thread)
		return;
	run->own = true;
	query_hide(&run->query);
	if (run == nested)
		return; /* the samples are the outermost one's */
	sampler_pop(thread);
	runs_push(run, thread, run == running ? running_frame : NULL);
}

void queries_disown_prepared(const sqlite3 *db)
{
	/* Inside a step of another statement what is prepared has no run. */
	if (running && !running->stmt && !running->label[0])
		queries_disown(db);
}

static int reset_and_end(struct run *run, int (*reset)(sqlite3_stmt *))
{
	struct thread *thread = sampler_thread();
	sqlite3_stmt *stmt = run->stmt;
	int rc;

	if (!thread) {
		runs_release(run);
		return reset(stmt);
	}
	if (running) {
		rc = reset(stmt);
	} else {
		query_continue(&run->query, thread);
		queries_enter_run(run, thread, NULL);
		rc = reset(stmt);
		queries_leave_run(thread);
	}
	runs_end(run, thread, rc);
	return rc;
}

int queries_reset(sqlite3_stmt *stmt, int (*reset)(sqlite3_stmt *))
{
	struct run *run = run_to_end(stmt);

	return run ? reset_and_end(run, reset) : reset(stmt);
}

int queries_end(sqlite3_stmt *stmt, int (*reset)(sqlite3_stmt *))
{
	struct run *run = run_to_end(stmt);

	return run ? reset_and_end(run, reset) : SQLITE_OK;
}

/* --- preparing ------------------------------------------------------------ */

/* SQLite reads the schema, waits for its lock, parses and plans: that is the query's
 * time, too, and may be most of it. A run of its own, which the statement's first
 * step goes on with; it is kept only if it is worth a line already, so that a cached
 * statement does not start at its preparation hours ago. */
void queries_prepare(struct query_step *step, sqlite3 *db, const char *text, const void *frame)
{
	struct session *session;

	*step = (struct query_step){ 0 };
	if (!queries_idle() && !is_inside(frame) && !suspended && (session = session_follow(db)) &&
	    !session->traced && runs_wanted(session) && (step->thread = sampler_thread()))
		step->run = runs_begin_prepare(session, step, text, step->thread);
	if (step->run)
		queries_enter_run(step->run, step->thread, frame);
	/* What SQLite runs to read the schema is no query of the host's. */
	suspended++;
}

void queries_prepared(struct query_step *step, int rc, sqlite3_stmt *stmt)
{
	struct run *run = step->run;

	suspended--;
	if (!run)
		return;
	queries_leave_run(step->thread);
	if (rc)
		runs_end(run, step->thread, rc);
	else if (!stmt || !runs_worth_logging(run))
		runs_release(run);
	else
		runs_prepared(run, stmt, step->thread);
}

bool queries_suspended(void)
{
	return suspended > 0;
}

void queries_suspend(void)
{
	suspended++;
}

void queries_resume(void)
{
	suspended--;
}
