/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/statements.h"

#include "query/inspect.h"
#include "sqlite/library/sites.h"
#include "sqlite/locks/transactions.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/plan/bytecode.h"
#include "sqlite/plan/module_methods.h"
#include "sqlite/runs/open_statements.h"
#include "sqlite/runs/session_life.h"

/* --- the connection's mutex --------------------------------------------------------------- */

static void lock(struct run_call *call, sqlite3 *db)
{
	call->mutex = sqlite3_db_mutex(db);
	sqlite3_mutex_enter(call->mutex);
}

static void unlock(struct run_call *call)
{
	if (call->mutex)
		sqlite3_mutex_leave(call->mutex);
	call->mutex = NULL;
}

/* --- steps -------------------------------------------------------------------------------- */

/* Inside a run: is it the host's code that runs SQL there, or SQLite's own? */
static bool is_hosts(const struct call *call, const void *caller)
{
	return call->is_in_exec || site_is_hosts(call->library, caller);
}

/* A call from outside of SQLite shows a slot of the host's. */
static void see_caller(const struct call *call, const void *caller)
{
	if (__builtin_expect(host_is_patched(call->library), 0) && !call->outer)
		site_see(caller);
}

/* Whether a statement that is stepped in this call can have a run. */
static bool may_run(const struct call *call, const void *caller)
{
	if (!call->number || call->is_quiet)
		return false;
	return !call->running || (!call->running->is_queryprofs && is_hosts(call, caller));
}

static struct run *continue_run(struct run_call *step, const struct session *session, sqlite3_stmt *stmt,
                                struct thread *thread, bool *is_busy)
{
	struct run *run = runs_acquire(stmt, step->call.number, is_busy);

	if (!run)
		return NULL;
	if (run->session != session || run->stmt != stmt) {
		runs_lose(run, step->call.number);
		return NULL;
	}
	if (run->prepared) {
		query_resume(&run->query, thread);
		span_run_join(&run->query.span, run->query.left_ns, run->query.is_logged);
	}
	query_enter(&run->query, thread);
	run_call_enter(step, run, thread);
	return run;
}

/* False: the end of the run was not seen. */
static bool describe_continued(struct run *run)
{
	if (!runs_is_current(run))
		return false;
	if (run->prepared) {
		run->prepared = false;
		runs_acquire_query_id(run);
		runs_publish_if_open(run);
		if (!run->is_queryprofs)
			query_show(&run->query);
	}
	return true;
}

static void step_session(struct run_call *step, struct session *session, sqlite3_stmt *stmt)
{
	bool samples = session_wants_samples(&session->settings), is_busy = false;
	bool has_runs = session_has_runs(session);
	struct thread *thread;
	struct run *run;
	bool is_private;

	if (!samples && !has_runs) {
		session_unwatch(session);
		return;
	}
	thread = sampler_thread();
	if (!thread)
		return;
	if (!step->call.running)
		opcode_library_learn(session->library, thread);
	is_private = session_enter_private(session, thread->id);
	/* The clocks run, and the tag exists, while another thread has the connection. */
	run = has_runs ? continue_run(step, session, stmt, thread, &is_busy) : NULL;
	if (is_busy) {
		runs_count(RUNS_UNTRACKED); /* another thread steps it, too */
	} else if (run) {
		if (!is_private)
			lock(step, session->db);
		if (!describe_continued(run)) {
			run_call_leave(step, thread);
			step->run = NULL;
			runs_lose(run, step->call.number);
		}
	}
	if (!is_busy && !step->run && samples &&
	    run_call_begin(step, (struct run_begin){ .session = session,
	                                             .thread = thread,
	                                             .stmt = stmt,
	                                             .is_private = is_private })) {
		if (!is_private && !step->mutex) {
			runs_announce(step->run);
			lock(step, session->db);
		}
		runs_describe(step->run);
	}
	if (is_private)
		session_leave_private(session);
}

void statement_step_begin_any(struct run_call *step, const struct host_library *library, sqlite3_stmt *stmt,
                              const void *frame, const void *caller)
{
	struct session *session;

	runs_enter_call(&step->call, library, frame);
	step->run = NULL;
	step->mutex = NULL;
	see_caller(&step->call, caller);
	if (!stmt || !may_run(&step->call, caller))
		return;
	session = session_follow(sqlite3_db_handle(stmt));
	if (session && !session->has_trace_callback)
		step_session(step, session, stmt);
}

void statement_step_end_any(struct run_call *step, int rc)
{
	struct call_slot *outer = call_outer(&step->call);

	if (outer)
		outer->newest_row = step->run && rc == SQLITE_ROW ? step->run->stmt : NULL;
	if (step->run && runs_is_own(step->run, step->call.number))
		run_call_return(step, rc);
	unlock(step);
	call_leave(&step->call);
}

/* --- resets and ends -------------------------------------------------------------------- */

/* The session of a statement that may have a run to end, NULL: it has none. `goes`: or an ended
 * run that is kept. */
static struct session *session_to_end(const struct host_library *library, sqlite3_stmt *stmt, bool goes)
{
	struct calling *calling = calling_current;
	const struct run *recent = calling ? *calling_recent(calling, stmt) : NULL;
	struct session *session;

	if (!stmt || sessions_idle())
		return NULL;
	session = recent ? runs_guess_session(recent, stmt) : NULL;
	if (session)
		return goes || !runs_has_ended(recent) ? session : NULL;
	session = session_of(host_api(library)->db_handle(stmt));
	if (!session || session->has_trace_callback)
		return NULL;
	return session_has_runs(session) || (goes && session_has_kept(session)) ? session : NULL;
}

/* Takes the statement's open run, if its end can be seen in this call. */
static struct run *acquire_run_to_end(struct run_call *call, struct session *session, sqlite3_stmt *stmt,
                                      bool *is_busy)
{
	const struct thread *thread = sampler_thread();
	struct run *recent = call->call.calling ? *calling_recent(call->call.calling, stmt) : NULL;
	bool is_private, is_current;

	*is_busy = false;
	call->run = NULL;
	call->mutex = NULL;
	if (!session || !call->call.number || call->call.is_quiet)
		return NULL;
	is_private = thread && session_enter_private(session, thread->id);
	if (is_private && recent && runs_acquire_private(recent, session, stmt, call->call.number))
		call->run = recent;
	else
		call->run = runs_acquire(stmt, call->call.number, is_busy);
	is_current = call->run && call->run->stmt == stmt && runs_is_current(call->run);
	if (is_private)
		session_leave_private(session);
	if (!call->run)
		return NULL;
	if (is_current) {
		if (!is_private)
			lock(call, sqlite3_db_handle(stmt));
		return call->run;
	}
	runs_lose(call->run, call->call.number);
	return call->run = NULL;
}

static int reset_and_end(struct run_call *call, statement_reset_function *reset)
{
	struct thread *thread = sampler_thread();
	struct run *run = call->run;
	bool is_inside = thread && !call->call.running;
	int rc;

	if (thread)
		query_enter(&run->query, thread);
	if (is_inside)
		run_call_enter(call, run, thread);
	else
		call_set_run(&call->call, run);
	rc = reset(run->stmt);
	if (is_inside) {
		run_call_leave(call, thread);
	} else {
		if (thread)
			query_leave(&run->query, thread);
		call_set_run(&call->call, NULL);
	}
	run_call_end(call, thread, rc);
	unlock(call);
	return rc;
}

/* Some hosts (node:sqlite) also reset before the first step, which does not end the preparation. */
static int reset_prepared(struct run_call *call, sqlite3_stmt *stmt, statement_reset_function *reset)
{
	int rc = reset(stmt);

	runs_give_back(call->run);
	unlock(call);
	return rc;
}

int statement_reset_any(const struct host_library *library, sqlite3_stmt *stmt,
                        statement_reset_function *reset, const void *frame)
{
	struct session *session = session_to_end(library, stmt, false);
	struct run_call call;
	bool is_busy;
	int rc;

	if (!session && calling_is_alone(calling_current))
		return reset(stmt);
	runs_enter_call(&call.call, library, frame);
	if (!acquire_run_to_end(&call, session, stmt, &is_busy))
		rc = reset(stmt);
	else
		rc = call.run->prepared ? reset_prepared(&call, stmt, reset) : reset_and_end(&call, reset);
	call_leave(&call.call);
	return rc;
}

/* Its run that has ended is not kept any more: nearly always one of this thread, as in
 * runs_acquire_private(). */
static void drop_ended(struct session *session, struct run *recent, const sqlite3_stmt *stmt)
{
	const struct thread *thread = thread_current;
	bool is_private = thread && recent && session_enter_private_again(session, thread->id);

	if (is_private && statement_has_ended(recent, stmt) && runs_is_of_session(recent, session))
		runs_free(recent);
	else
		runs_drop_ended(stmt);
	if (is_private)
		session_leave_private(session);
}

int statement_finalize(const struct host_library *library, sqlite3_stmt *stmt,
                       statement_reset_function *reset, statement_reset_function *finalize, const void *frame)
{
	struct session *session = session_to_end(library, stmt, true);
	struct run *recent = calling_current ? *calling_recent(calling_current, stmt) : NULL;
	int reset_rc = SQLITE_OK, rc;
	bool is_busy = false;
	struct run_call call;

	if (!session && calling_is_alone(calling_current)) {
		bytecode_read(stmt, frame);
		return finalize(stmt);
	}
	runs_enter_call(&call.call, library, frame);
	if (!statement_has_ended(recent, stmt) && acquire_run_to_end(&call, session, stmt, &is_busy))
		reset_rc = reset_and_end(&call, reset);
	if (reset_rc == SQLITE_OK)
		bytecode_read(stmt, frame);
	if (is_busy)
		runs_statement_goes(stmt);
	if (session)
		drop_ended(session, recent, stmt);
	rc = finalize(stmt);
	call_leave(&call.call);
	return reset_rc ? reset_rc : rc;
}

/* --- exec -------------------------------------------------------------------------------- */

void statement_exec_begin(struct call *exec, const struct host_library *library, const void *frame,
                          const void *caller)
{
	runs_enter_call(exec, library, frame);
	see_caller(exec, caller);
	if (exec->number)
		exec->slot->is_exec = exec->running && is_hosts(exec, caller);
}

void statement_exec_end(struct call *exec)
{
	call_leave(exec);
}

sqlite3_stmt *statement_exec_row(const struct call *exec)
{
	return exec->number ? exec->slot->newest_row : NULL;
}

void statement_exec_abandon(const struct call *exec, sqlite3_stmt *stmt)
{
	struct run_call call = { .call = *exec };
	struct thread *thread = sampler_thread();
	bool is_busy;

	if (!acquire_run_to_end(&call, session_to_end(exec->library, stmt, false), stmt, &is_busy))
		return;
	/* It ends now. */
	if (thread) {
		query_enter(&call.run->query, thread);
		query_leave(&call.run->query, thread);
	}
	run_call_end(&call, thread, SQLITE_ABORT);
	unlock(&call);
}

/* --- preparing ------------------------------------------------------------ */

/* SQLite reads the schema, waits for its lock, parses and plans. That is part of the query's time,
 * and may be most of it. It is a run of its own, which the statement's first step continues; it is
 * kept only if it is already worth a row, so that a cached statement does not start at its
 * preparation hours ago. */
void statement_prepare_begin(struct run_call *prepare, const struct host_library *library, sqlite3 *db,
                             const char *text, const void *frame)
{
	struct thread *thread;
	struct session *session;
	bool is_private;

	prepare->call = (struct call){ .number = 0 };
	prepare->run = NULL;
	prepare->mutex = NULL;
	bytecode_read(db, frame);
	if (sessions_idle())
		return;
	runs_enter_call(&prepare->call, library, frame);
	if (!prepare->call.number)
		return;
	prepare->call.slot->is_quiet = true;
	if (prepare->call.is_quiet)
		module_replay_enter(&prepare->call, text);
	if (prepare->call.is_quiet || prepare->call.running)
		return;
	session = recording_meets(library, db);
	if (!session || session->has_trace_callback || !session_wants_samples(&session->settings))
		return;
	thread = sampler_thread();
	if (!thread)
		return;
	opcode_library_learn(library, thread);
	is_private = session_enter_private(session, thread->id);
	if (run_call_begin(
		    prepare,
		    (struct run_begin){ .session = session, .thread = thread, .is_private = is_private })) {
		prepare->run->query.text = text;
		query_show(&prepare->run->query);
	}
	if (is_private)
		session_leave_private(session);
	else if (prepare->run)
		lock(prepare, db);
	if (prepare->run)
		module_methods_prepare(session, prepare->call.calling);
}

static void end_prepare(struct run_call *prepare, int rc, sqlite3_stmt *stmt)
{
	const struct module_record *answers = module_record_end(calling_current);
	struct thread *thread = sampler_thread();
	struct run *run = prepare->run;
	bool is_worth_logging;

	run_call_leave(prepare, thread);
	if (!rc && thread)
		transaction_call_ends(run->session, run);
	if (rc || !thread || !stmt) {
		run_call_end(prepare, thread, rc);
		return;
	}
	/* The preparation itself: each run of a text that names a trace is worth it. */
	is_worth_logging = runs_worth_logging(run);
	if (run->settings.log && !run->is_queryprofs) {
		struct statement_name name = { .text = host_api(run->session->library)->sql(stmt),
			                       .database = run->session->database,
			                       .database_hash = run->session->database_hash };

		bytecode_prepared(run->session, stmt, &run->query.counts.start, &thread->clock, &name,
		                  answers);
		runs_name(run, &name);
	}
	if (is_worth_logging) {
		run_move(run, stmt);
		return;
	}
	*calling_recent(prepare->call.calling, stmt) = run->is_queryprofs ? NULL : runs_keep_ended(run, stmt);
	run_end(run, (struct run_result){ .thread = thread, .has_statement = !run->is_queryprofs });
}

void statement_prepare_end(struct run_call *prepare, int rc, sqlite3_stmt *stmt)
{
	/* Another one at its address may have been freed unseen: its run goes. */
	if (stmt)
		runs_drop_ended(stmt);
	if (prepare->run && runs_is_own(prepare->run, prepare->call.number)) {
		struct session *session = prepare->run->session;

		end_prepare(prepare, rc, stmt);
		if (stmt)
			open_statements_prepared(session);
	}
	unlock(prepare);
	call_leave(&prepare->call);
}
