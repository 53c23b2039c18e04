/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/live/values.h"
#include "collect/open_runs.h"
#include "collect/open_waits.h"
#include "collect/transaction_states.h"
#include "sql_live_tables.h"
#include "wire/query_record.h"
#include "wire/wait.h"

struct taking {
	sqlite3 *db;
	struct snapshot *snapshot;
	struct live_process *process;
	uint64_t realtime_offset_ns;
	sqlite3_stmt *processes, *runs, *transactions;
	int code;
};

/* --- values --------------------------------------------------------------------------------- */

/* NULL if it is not known. */
static void bind_number_if(sqlite3_stmt *row, const char *name, bool is_known, uint64_t number)
{
	if (is_known)
		live_bind_number(row, name, number);
	else
		live_bind_text(row, name, NULL);
}

static void bind_key(sqlite3_stmt *row, const char *name, struct query_key key)
{
	char text[37];

	query_key_text(key, text);
	live_bind_text(row, name, key.hi || key.lo ? text : "");
}

/* The difference of two readings of CLOCK_MONOTONIC, which may be anything in a stranger's memory. */
static uint64_t since(uint64_t start_ns, uint64_t now_ns)
{
	return start_ns < now_ns ? now_ns - start_ns : 0;
}

/* --- runs --------------------------------------------------------------------------------------- */

/* What the run's thread waits for. A wait or a lock from before the present call remained after a
 * longjmp(). */
static void bind_wait(struct taking *taking, const struct open_run_view *run,
                      const struct open_wait_view *wait)
{
	const uint64_t now = taking->process->at_ns, call_ns = since(run->entered_ns, now);
	const bool is_lock =
		wait->lock && wait->lock_since_ns >= run->entered_ns && wait->lock_since_ns <= now;
	const bool is_call = wait->cause && wait->wait_ns - wait->wait_ns / 1000 <= call_ns;
	uint64_t ns = is_lock ? now - wait->lock_since_ns : wait->wait_ns < call_ns ? wait->wait_ns : call_ns;

	live_bind_text(taking->runs, ":wait_cause",
	               wait_cause_name(is_lock   ? WAIT_LOCK
	                               : is_call ? wait->cause
	                                         : WAIT_NONE));
	live_bind_text(taking->runs, ":wait_object",
	               is_lock                   ? wait_lock_name(wait->lock)
	               : is_call && wait->caused ? wait_cause_name(wait->caused)
	                                         : "");
	bind_number_if(taking->runs, ":wait_ns", is_lock || is_call, ns);
	live_bind_number(taking->runs, ":holder_session_id", is_lock ? wait->holder_session : 0);
	live_bind_number(taking->runs, ":holder_inner_id", is_lock ? wait->holder_process : 0);
	live_bind_number(taking->runs, ":holder_thread_id", is_lock ? wait->holder_thread : 0);
}

static void add_run(struct taking *taking, const struct open_run_view *run)
{
	const uint64_t now = taking->process->at_ns, elapsed = since(run->start_ns, now);
	const bool is_running = run->entered_ns != 0;
	uint64_t inside = run->execution_ns + (is_running ? since(run->entered_ns, now) : 0);
	struct open_wait_view wait = { .thread_id = 0 };
	struct live_thread thread;
	uint32_t thread_id;

	/* A run that waits between its calls does not appear here, because the program waits then. */
	if (!is_running || !open_waits_find_run(taking->process->shared.waits, run->key, &wait))
		wait = (struct open_wait_view){ .thread_id = 0 };
	thread_id = wait.thread_id ? wait.thread_id : run->thread_id;
	thread = live_thread_inspect(taking->process, thread_id);
	inside = inside < elapsed && !run->has_threads ? inside : elapsed;
	live_bind_number(taking->runs, ":process_id", (uint64_t)taking->process->pid);
	if (run->texts.query_id)
		live_bind_text(taking->runs, ":query_id", run->texts.query_id);
	else
		bind_key(taking->runs, ":query_id", run->key);
	bind_key(taking->runs, ":initial_query_id", run->initial);
	bind_key(taking->runs, ":parent_query_id", run->parent);
	live_bind_number(taking->runs, ":thread_id", thread_id);
	live_bind_text(taking->runs, ":thread_name", thread.name[0] ? thread.name : NULL);
	live_bind_number(taking->runs, ":session_id", query_key_session(run->key));
	live_bind_number(taking->runs, ":is_running", is_running);
	live_bind_number(taking->runs, ":query_start_ns", run->start_ns + taking->realtime_offset_ns);
	live_bind_number(taking->runs, ":elapsed_ns", elapsed);
	bind_number_if(taking->runs, ":call_ns", is_running, since(run->entered_ns, now));
	live_bind_number(taking->runs, ":outside_ns", elapsed - inside);
	live_bind_text(taking->runs, ":state", thread.state[0] ? thread.state : NULL);
	live_bind_text(taking->runs, ":query", run->texts.text);
	live_bind_number(taking->runs, ":is_cut", run->texts.is_cut);
	live_bind_text(taking->runs, ":database", run->texts.database);
	live_bind_text(taking->runs, ":library", run->texts.library ? run->texts.library : "");
	bind_wait(taking, run, &wait);
	live_insert(taking->runs, &taking->code);
	taking->snapshot->running += is_running;
	taking->snapshot->between += !is_running;
}

/* --- transactions ----------------------------------------------------------------------------------- */

static void bind_hold(struct taking *taking, const char *name, const struct lock_hold *hold)
{
	bind_number_if(taking->transactions, name, hold->files != 0,
	               since(hold->since_ns, taking->process->at_ns));
}

static void add_transaction(struct taking *taking, const struct transaction_state *state)
{
	sqlite3_stmt *row = taking->transactions;
	const struct live_thread thread = live_thread_inspect(taking->process, state->thread_id);

	live_bind_number(row, ":process_id", (uint64_t)taking->process->pid);
	live_bind_number(row, ":number", state->number);
	live_bind_number(row, ":session_id", state->session);
	live_bind_number(row, ":thread_id", state->thread_id);
	live_bind_text(row, ":thread_name", thread.name[0] ? thread.name : NULL);
	live_bind_text(row, ":state", thread.state[0] ? thread.state : NULL);
	live_bind_number(row, ":age_ns", since(state->start_ns, taking->process->at_ns));
	bind_hold(taking, ":write_lock_ns", &state->holds[HOLD_WRITE]);
	bind_hold(taking, ":exclusive_lock_ns", &state->holds[HOLD_EXCLUSIVE]);
	live_bind_number(row, ":statements", state->statements);
	live_bind_text(row, ":database", state->path[0] ? state->path : NULL);
	bind_key(row, ":first_query_id", state->first);
	live_bind_text(row, ":first_query", state->text[0] ? state->text : NULL);
	bind_key(row, ":last_query_id", state->last);
	live_insert(row, &taking->code);
	taking->snapshot->transactions++;
}

/* --- processes -------------------------------------------------------------------------------------- */

/* "python3.11 app.py" */
static void bind_program(sqlite3_stmt *row, const struct writer_identity *identity)
{
	const char *executable = strrchr(identity->executable, '/'), *script = strrchr(identity->script, '/');
	char program[600];

	snprintf(program, sizeof(program), "%s%s%s", executable ? executable + 1 : identity->executable,
	         identity->script[0] ? " " : "", script ? script + 1 : identity->script);
	live_bind_text(row, ":program", program);
	live_bind_text(row, ":hostname", identity->hostname);
	live_bind_number(row, ":inner_id", (uint64_t)identity->process_id);
}

static void add_process(struct taking *taking)
{
	struct live_process *process = taking->process;
	const struct transaction_state *state;
	struct open_run_view run;
	uint32_t from = 0;

	live_bind_number(taking->processes, ":process_id", (uint64_t)process->pid);
	live_bind_number(taking->processes, ":is_read", process->is_open);
	live_bind_number(taking->processes, ":changed", process->changed);
	if (process->is_open) {
		bind_program(taking->processes, &process->shared.identity);
	} else {
		live_bind_text(taking->processes, ":program", NULL);
		live_bind_text(taking->processes, ":hostname", NULL);
		live_bind_text(taking->processes, ":inner_id", NULL);
	}
	live_insert(taking->processes, &taking->code);
	taking->snapshot->processes++;
	taking->snapshot->unread += !process->is_open;
	if (!process->is_open)
		return;
	taking->snapshot->changed += process->changed;
	while (!taking->code && open_runs_next(process->shared.runs, &from, &run))
		add_run(taking, &run);
	from = 0;
	while (!taking->code && (state = transaction_states_next(process->shared.transactions, &from)))
		add_transaction(taking, state);
}

static const char insert_process[] = "INSERT OR REPLACE INTO temp.live_processes VALUES (:process_id, "
				     ":inner_id, :program, :hostname, :is_read, :changed)";
static const char insert_run[] = "INSERT INTO temp.live_runs VALUES (:process_id, :query_id, "
				 ":initial_query_id, :parent_query_id, :thread_id, :thread_name, "
				 ":session_id, :is_running, :query_start_ns, :elapsed_ns, :call_ns, "
				 ":outside_ns, :state, :wait_cause, :wait_object, :wait_ns, "
				 ":holder_session_id, :holder_inner_id, :holder_thread_id, :query, :is_cut, "
				 ":database, :library)";
static const char insert_transaction[] =
	"INSERT INTO temp.live_transactions VALUES (:process_id, :number, :session_id, :thread_id, "
	":thread_name, :state, :age_ns, :write_lock_ns, :exclusive_lock_ns, :statements, :database, "
	":first_query_id, :first_query, :last_query_id)";

int snapshot_take(sqlite3 *db, struct live *live, struct snapshot *snapshot)
{
	struct taking taking = { .db = db, .snapshot = snapshot };

	*snapshot = (struct snapshot){ .now_ns = clock_ns(CLOCK_REALTIME) };
	taking.realtime_offset_ns = clock_offset_ns(0);
	taking.code = sqlite3_exec(db, sql_live_tables, NULL, NULL, NULL);
	if (!taking.code)
		taking.code = sqlite3_prepare_v2(db, insert_process, -1, &taking.processes, NULL);
	if (!taking.code)
		taking.code = sqlite3_prepare_v2(db, insert_run, -1, &taking.runs, NULL);
	if (!taking.code)
		taking.code = sqlite3_prepare_v2(db, insert_transaction, -1, &taking.transactions, NULL);
	for (size_t i = 0; !taking.code && i < live->processes.count; i++) {
		taking.process = &live->processes.items[i];
		add_process(&taking);
	}
	sqlite3_finalize(taking.processes);
	sqlite3_finalize(taking.runs);
	sqlite3_finalize(taking.transactions);
	return taking.code;
}

sqlite3_stmt *snapshot_prepare(sqlite3 *db, const struct snapshot *snapshot, const char *sql, int seconds)
{
	sqlite3_stmt *rows = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK)
		return NULL;
	live_bind_number(rows, ":now_ns", snapshot->now_ns);
	live_bind_number(rows, ":from_ns", snapshot->now_ns - (uint64_t)seconds * NS_PER_S);
	return rows;
}
