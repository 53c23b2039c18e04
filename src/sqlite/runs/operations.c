/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/operations.h"

#include <string.h>

#include "query/inspect.h"
#include "sqlite/locks/transactions.h"
#include "sqlite/runs/session_life.h"
#include "timers/threads.h"

/* Longer than a run keeps, which then cuts it. */
#define LABEL_BYTES 192

static void write_label(char label[LABEL_BYTES], const struct operation_text *text)
{
	const char *parts[] = { text->schema ? text->schema : "main", text->table, text->column };
	size_t size = LABEL_BYTES;

	sqlite3_snprintf((int)size, label, "%s(%s", text->function, parts[0]);
	for (size_t i = 1; i < sizeof(parts) / sizeof(*parts) && parts[i]; i++) {
		size_t used = strlen(label);

		sqlite3_snprintf((int)(size - used), label + used, ".%s", parts[i]);
	}
	if (strlen(label) < size - 1)
		strcat(label, ")");
}

static void enter_call(struct run_call *call, const struct host_library *library, const void *frame)
{
	runs_enter_call(&call->call, library, frame);
	call->run = NULL;
	call->is_nested = false;
	call->mutex = NULL;
}

/* Whether an operation in this call has a run of its own. */
static bool is_at_top(const struct run_call *call)
{
	return call->call.number && !call->call.running && !call->call.is_quiet && !sessions_idle();
}

static void begin(struct run_call *call, struct session *session, enum run_kind kind)
{
	struct thread *thread;

	if (!session || session->has_trace_callback || !session_wants_samples(&session->settings) ||
	    !(thread = sampler_thread()))
		return;
	run_call_begin(call, (struct run_begin){ .session = session, .thread = thread, .kind = kind });
}

/* The file name belongs to SQLite, and is copied under the mutex. */
static void describe(struct run_call *call, sqlite3 *db, const char *label, const char *schema)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(db);

	runs_announce_operation(call->run, label);
	sqlite3_mutex_enter(mutex);
	runs_acquire_query_id(call->run);
	runs_describe_operation(call->run, sqlite3_db_filename(db, schema));
	sqlite3_mutex_leave(mutex);
}

void operation_begin(struct run_call *call, const struct host_library *library, sqlite3 *db,
                     const struct operation_text *text, const void *frame)
{
	char label[LABEL_BYTES];

	enter_call(call, library, frame);
	if (!is_at_top(call))
		return;
	begin(call, recording_meets(library, db), RUN_OPERATION);
	if (!call->run)
		return;
	write_label(label, text);
	describe(call, db, label, text->schema ? text->schema : "main");
}

/* False: the run was lost meanwhile. */
static bool leave_run(struct run_call *call)
{
	struct thread *thread = sampler_thread();

	if (!call->run || !runs_is_own(call->run, call->call.number))
		return false;
	run_call_leave(call, thread);
	return true;
}

/* A close without work has no row, and is not counted. */
#define CLOSE_MIN_NS 1000000

/* It has written, such as a checkpoint, or kept another connection waiting. */
static bool has_worked(const struct run *run)
{
	const struct transaction *transaction = &run->session->transaction;

	return (run->query.counts.has_waits && run->query.counts.waits[WAIT_WRITES] != 0) ||
	       (__atomic_load_n(&transaction->open.number, __ATOMIC_RELAXED) != 0 &&
	        __atomic_load_n(&transaction->was_waited_for, __ATOMIC_RELAXED));
}

static void end(struct run_call *call, int rc)
{
	if (!leave_run(call))
		return;
	if (call->run->kind == RUN_CLOSE && has_worked(call->run))
		call->run->settings.min_duration_ns = 0;
	if (call->run->kind == RUN_CLOSE && !rc && !query_lasted(&call->run->query, CLOSE_MIN_NS) &&
	    !runs_worth_logging(call->run))
		call->run->settings.log = false;
	run_call_end(call, sampler_thread(), rc);
}

void operation_end(struct run_call *call, int rc)
{
	end(call, rc);
	call_leave(&call->call);
}

void operation_opened(struct run_call *call, const void *handle, int rc)
{
	if (!handle) {
		operation_end(call, rc);
		return;
	}
	/* sqlite3_exec() frees statements unseen: the ended run of one at this address would be found first.
	 */
	runs_drop_ended(handle);
	if (leave_run(call))
		run_move(call->run, handle);
	call_leave(&call->call);
}

void operation_begin_exec(struct run_call *call, const struct call *exec, sqlite3 *db, const char *sql)
{
	*call = (struct run_call){ .call = *exec };
	if (!is_at_top(call))
		return;
	begin(call, recording_meets(exec->library, db), RUN_OPERATION);
	if (!call->run)
		return;
	describe(call, db, "sqlite3_exec()", "main");
	query_hide(&call->run->query);
	call->run->query.text = sql;
	query_show(&call->run->query);
}

void operation_end_exec(struct run_call *call, int rc)
{
	end(call, rc);
}

/* --- waiting ----------------------------------------------------------------------------- */

/* Another thread has the connection: nothing of it is read, and the host's query_id is left to its next
 * statement. */
void operation_begin_wait(struct run_call *call, const void *mutex, const void *frame)
{
	struct session *session = session_of_mutex(mutex);

	*call = (struct run_call){ .run = NULL };
	if (!session || (calling_current && calling_current->used))
		return;
	enter_call(call, session->library, frame);
	if (!is_at_top(call))
		return;
	begin(call, session, RUN_WAIT);
	if (!call->run)
		return;
	/* The session is now held. If another one was held, it was so until then. */
	if (__atomic_load_n(&session->mutex, __ATOMIC_RELAXED) != mutex)
		call->run->settings.log = false;
	runs_announce_operation(call->run, "sqlite3_mutex_enter()");
	query_show(&call->run->query);
}

/* --- handles -------------------------------------------------------------------------- */

void operation_use(struct run_call *call, const struct host_library *library, const void *handle,
                   const void *frame)
{
	struct thread *thread;
	bool is_busy;

	enter_call(call, library, frame);
	if (!handle || !is_at_top(call) || !(thread = sampler_thread()))
		return;
	call->run = runs_acquire(handle, call->call.number, &is_busy);
	if (!call->run)
		return;
	query_enter(&call->run->query, thread);
	run_call_enter(call, call->run, thread);
}

void operation_used(struct run_call *call)
{
	if (leave_run(call)) {
		transaction_call_ends(call->run->session, call->run);
		runs_give_back(call->run);
	}
	call_leave(&call->call);
}

/* Also inside another run, and if nothing is sampled any more, because the handle is freed. */
void operation_finish(struct run_call *call, const struct host_library *library, const void *handle,
                      const void *frame)
{
	struct thread *thread = sampler_thread();
	bool is_busy;

	enter_call(call, library, frame);
	if (!handle || !call->call.number)
		return;
	call->run = runs_acquire(handle, call->call.number, &is_busy);
	if (!call->run)
		return;
	runs_hide_key(call->run);
	if (!thread)
		return;
	query_enter(&call->run->query, thread);
	call_set_run(&call->call, call->run);
	if (!call->call.running)
		runs_push(call->run, thread, frame);
}

/* --- closing ----------------------------------------------------------------------------- */

void operation_begin_close(struct run_call *call, const struct host_library *library, sqlite3 *db,
                           const void *frame)
{
	*call = (struct run_call){ .run = NULL };
	if (sessions_idle())
		return;
	enter_call(call, library, frame);
	/* Virtual tables finalize their statements while their connection goes. */
	if (call->call.number)
		call->call.slot->is_quiet = true;
	if (!db || !is_at_top(call))
		return;
	begin(call, session_of(db), RUN_CLOSE);
	if (!call->run)
		return;
	if (call->run->settings.min_duration_ns < CLOSE_MIN_NS)
		call->run->settings.min_duration_ns = CLOSE_MIN_NS;
	runs_announce_operation(call->run, "sqlite3_close()");
	runs_describe_operation(call->run, call->run->session->database);
}
