/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/end.h"

#include <stdio.h>

#include "base/hot_path.h"
#include "query/inspect.h"
#include "query/statement_stats.h"
#include "query/wait.h"
#include "sqlite/locks/locks.h"
#include "sqlite/locks/transactions.h"
#include "sqlite/plan/bound_values.h"
#include "sqlite/plan/bytecode.h"
#include "sqlite/plan/module_counts.h"
#include "sqlite/runs/run_caller.h"
#include "sqlite/runs/scan_counts.h"
#include "timers/memory_sample.h"

bool runs_worth_logging(const struct run *run)
{
	return run->settings.log && !run->is_queryprofs && run_is_worth_a_line(run);
}

static void add_counters(struct query_work *work, struct run *run)
{
	int values[STATEMENT_COUNTERS];
	const volatile int *now = runs_counters(run, values);

	work->vm_steps = run_spent(run, COUNTED_VM_STEPS, now[COUNTED_VM_STEPS]);
	work->fullscan_steps = run_spent(run, COUNTED_FULLSCAN_STEPS, now[COUNTED_FULLSCAN_STEPS]);
	work->sorts = run_spent(run, COUNTED_SORTS, now[COUNTED_SORTS]);
	work->autoindexes = run_spent(run, COUNTED_AUTOINDEXES, now[COUNTED_AUTOINDEXES]);
	work->reprepares = run_spent(run, COUNTED_REPREPARES, now[COUNTED_REPREPARES]);
	run->vm_steps = now[COUNTED_VM_STEPS];
}

/* SQLite has no message yet for a run that the caller abandoned, nor for a closed connection, and
 * the connection of an operation may be freed. */
static bool has_error(const struct run *run, int rc, bool is_locked)
{
	return rc != SQLITE_ABORT && run->kind == RUN_STATEMENT && is_locked &&
	       !session_is_closing(run->session);
}

/* The extended result code, which most hosts do not request. */
static int extend(const struct run *run, int rc, bool is_locked)
{
	bool is_known = has_error(run, rc, true);
	sqlite3_mutex *mutex = is_known && !is_locked ? sqlite3_db_mutex(run->session->db) : NULL;
	int code;

	if (!is_known || (mutex && sqlite3_mutex_try(mutex)))
		return rc;
	code = sqlite3_extended_errcode(run->session->db);
	sqlite3_mutex_leave(mutex);
	return (code & 0xff) == rc ? code : rc;
}

/* sqlite3_close() is never refused a lock. */
static const char *exception_of(const struct run *run, int rc, bool is_locked)
{
	if (run->kind == RUN_CLOSE && rc == SQLITE_BUSY)
		return "unable to close due to unfinalized statements or unfinished backups";
	return has_error(run, rc, is_locked) ? sqlite3_errmsg(run->session->db) : sqlite3_errstr(rc);
}

#define NOMEM_TEXT 160

/* Adds what is known if memory is sampled. A limit of SQLite's own refuses memory without its allocator. */
static const char *describe_nomem(const char *message, char text[NOMEM_TEXT])
{
	const struct memory_refused refused = memory_sample_refused();

	if (!refused.size)
		return message;
	snprintf(text, NOMEM_TEXT, "%.60s: %zu bytes were refused while SQLite had about %.1f MB", message,
	         refused.size, (double)refused.live / 1e6);
	return text;
}

/* A statement's line is written under its connection's mutex (`is_locked`). If another thread has
 * that, the line is without what the mutex guards. */
static void write_line(const struct run *run, const struct query_work *work, int rc, bool is_locked)
{
	const struct session *session = run->session;
	struct query_end end = {
		.work = *work,
		.query_id = run->query.query_id,
		.query = run->query.text,
		.database = run->query.database,
		.library = session->library->name,
		.off_cpu_period_ns = run->settings.off_cpu_period_ns,
		.was_prepared_only = run->prepared || runs_is_preparation(run),
	};
	char *expanded = NULL, nomem[NOMEM_TEXT];

	end.call_stack_size = run_caller(run, &end.call_stack);
	if (run->stmt && is_locked) {
		/* Reads the SQL again, because re-preparing replaces SQLite's copy. */
		end.query = sqlite3_sql(run->stmt);
		end.database = sqlite3_db_filename(session->db, "main");
		if (!run->prepared && query_has_samples(&run->query))
			end.bytecode = bytecode_see(run->session, run->stmt, end.query, rc == SQLITE_DONE);
		if (end.bytecode && !run->session->has_trace_callback) {
			scan_counts_publish(run, end.bytecode, work->reprepares != 0, rc == SQLITE_DONE);
			filter_counts_publish(run, end.bytecode);
			module_counts_publish(run, end.bytecode);
		}
		if (!work->sorts) /* SQLite's number leaves out the sorter's memory */
			end.memory_usage =
				(uint64_t)sqlite3_stmt_status(run->stmt, SQLITE_STMTSTATUS_MEMUSED, 0);
		if (run->settings.log_parameters && sqlite3_bind_parameter_count(run->stmt))
			end.expanded = expanded =
				bound_values_expand(host_api(session->library), session->db, run->stmt);
		page_cache_read(run->session);
	}
	if (work->exception_code)
		end.exception = exception_of(run, (int)work->exception_code, is_locked);
	if (work->exception_code == SQLITE_NOMEM || work->exception_code == SQLITE_IOERR_NOMEM)
		end.exception = describe_nomem(end.exception, nomem);
	query_finish(&run->query, &end);
	sqlite3_free(expanded);
	runs_count(RUNS_LOGGED);
}

static void write_statement_line(const struct run *run, const struct query_work *work, int rc)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(run->session->db);
	bool is_locked = !sqlite3_mutex_try(mutex);

	write_line(run, work, rc, is_locked);
	if (is_locked)
		sqlite3_mutex_leave(mutex);
}

/* `work` NULL: it has prepared a statement. */
static void count(struct run *run, const struct thread *thread, const struct query_work *work)
{
	if (!run->stmt) { /* its text belongs to the host, or to the run itself */
		runs_name_statement(run);
	} else if (work && work->reprepares) {
		runs_name_anew(run);
		query_forget_bytecode(&run->query);
	} else if (!statement_stats_is_found(run->statement)) {
		runs_name_again(run); /* its number belongs to another one, or it is in "(other)" */
	}
	query_count(&run->query, run->statement, thread->id, run->prepared ? NULL : work);
}

void runs_record_more(struct run *run, struct run_result result, bool is_counted, bool is_wanted)
{
	struct query_work work = { .rows = run->query.rows };

	if (run->stmt)
		add_counters(&work, run);
	if (run_is_failure(result.rc))
		work.exception_code = extend(run, result.rc, result.is_locked);
	if (!is_counted)
		count(run, result.thread, &work);
	const struct query_ending ending = {
		.statement = run->statement,
		.least_ns = run->settings.min_duration_ns,
		.exception_code = work.exception_code,
		.is_wanted = is_wanted,
		.is_preparation = run->prepared || runs_is_preparation(run),
	};
	if (!query_end_run(&run->query, &ending))
		return;
	if (result.is_in_call || run->kind == RUN_OPERATION || runs_is_preparation(run))
		run_caller_read(run);
	if (result.is_locked || run->kind != RUN_STATEMENT)
		write_line(run, &work, result.rc, result.is_locked);
	else
		write_statement_line(run, &work, result.rc);
	run_caller_forget(run);
}

static void end_preparation(struct run *run, struct run_result result)
{
	if (result.has_statement && run->settings.log)
		count(run, result.thread, NULL);
	if (result.has_statement)
		query_end_span(&run->query,
		               &(struct query_span_end){ run->statement, .is_preparation = true });
	if (query_has_samples(&run->query)) /* it may have been published with the host's text */
		query_withdraw(&run->query);
}

/* What may be read of it at its end: an operation's session is held, and a statement must not go. */
static bool is_to_be_read(struct run *run, bool is_covered)
{
	const struct session *session = run->session;

	return run->kind != RUN_STATEMENT ||
	       (runs_is_of_session(run, session) && session->db && (is_covered || runs_claim_end(run)));
}

/* The locks and the transaction belong to the connection, whose mutex another thread holds while
 * it waits for a lock. True: others wait for it, see transaction_run_ends(). */
static bool end_locks(const struct run *run, const struct run_result *result, bool is_there)
{
	struct session *session = run->session;
	int code = result->rc;

	wait_run_ends(result->thread);
	if (run->kind == RUN_WAIT)
		return false;
	if (is_there && locks_is_refusal(code))
		code = extend(run, code, result->is_locked);
	locks_run_ends(run, result->thread, code);
	return is_there && __atomic_load_n(&session->transaction.open.number, __ATOMIC_RELAXED) &&
	       !run->is_queryprofs && transaction_run_ends(session, run, result->rc);
}

/* For every run except a successful preparation. `is_inside`: the thread owns the run's session now. */
static void end_executed(struct run *run, struct run_result result, bool is_inside)
{
	bool is_there = is_to_be_read(run, result.is_locked || is_inside);
	bool is_wanted = end_locks(run, &result, is_there);

	if (run->prepared) /* and never stepped */
		query_resume(&run->query, result.thread);
	if (is_there && run->settings.log && !run->is_queryprofs)
		run_record(run, &result, run->stmt && !run->prepared, is_wanted);
	if (!is_there || !run->stmt || !run->query.text || run->is_queryprofs ||
	    run->session->has_trace_callback)
		runs_release(run);
	else
		runs_keep(run, is_inside);
}

static __attribute__((noinline)) void end_any(struct run *run, struct run_result result, bool is_inside)
{
	bool is_silent = !result.thread || (!result.rc && runs_is_preparation(run));

	if (is_silent && runs_is_preparation(run))
		end_preparation(run, result);
	if (is_silent)
		runs_release(run);
	else
		end_executed(run, result, is_inside);
}

HOT_PATH void run_end(struct run *run, struct run_result result)
{
	struct session *session = run->session;
	struct thread *thread = result.thread;
	bool is_inside = thread && run->is_private && session_enter_private(session, thread->id);

	if (is_inside && run_is_plain(run, session, thread, result.rc))
		run_end_plain(run, session, result);
	else
		end_any(run, result, is_inside);
	if (is_inside)
		session_leave_private(session);
}
