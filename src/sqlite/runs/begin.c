/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/begin.h"

#include <stdlib.h>
#include <string.h>

#include "base/hot_path.h"
#include "collect/open_runs.h"
#include "handover/storing.h"
#include "query/begin.h"
#include "query/inspect.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/plan/bytecode.h"
#include "sqlite/plan/module_counts.h"
#include "sqlite/runs/scan_counts.h"

#define FIRST_COUNTER SQLITE_STMTSTATUS_FULLSCAN_STEP
_Static_assert(SQLITE_STMTSTATUS_VM_STEP - FIRST_COUNTER == COUNTED_VM_STEPS &&
                       SQLITE_STMTSTATUS_REPREPARE - FIRST_COUNTER == COUNTED_REPREPARES,
               "SQLite's numbers");

/* --- a run begins ----------------------------------------------------------------------- */

void runs_read_counters(const struct run *run, int values[STATEMENT_COUNTERS])
{
	for (int i = 0; i < STATEMENT_COUNTERS; i++)
		values[i] = host_api(run->session->library)->stmt_status(run->stmt, FIRST_COUNTER + i, 0);
}

/* A tag also has the periods, so another one is pushed. */
static void copy_settings(struct run *run)
{
	const struct session_settings *from = &run->session->settings;
	struct run_settings *to = &run->settings;

	/* Acquire: what changes meanwhile has another number. */
	to->version = __atomic_load_n(&run->session->settings_version, __ATOMIC_ACQUIRE);
	for (int clock = 0; clock < TIMER_CLOCKS; clock++)
		to->period_ns[clock] = from->period_ns[clock];
	to->off_cpu_period_ns = from->off_cpu_period_ns;
	to->log = from->log_queries;
	to->log_parameters = from->log_query_parameters;
	to->min_duration_ns = run->is_traced ? 0 : from->log_queries_min_query_duration_ns;
	run->tag_slot = NULL;
}

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

/* The statement's ended run, if it belongs to this very statement. */
static struct run *acquire_ended(const struct session *session, const sqlite3_stmt *stmt, uint64_t owner)
{
	struct run *run;
	bool is_busy;

	run = runs_any_kept() ? runs_acquire_from(stmt, RUN_ENDED, owner, &is_busy) : NULL;
	if (!run || (run->session == session && runs_is_of_session(run, session) &&
	             run_is_same_text(run, host_api(session->library))))
		return run;
	runs_free(run);
	return NULL;
}

/* Fills in what the run keeps of its statement. */
static void set_up(struct run *run, struct session *session, sqlite3_stmt *stmt)
{
	runs_set_statement(run, stmt);
	run->label[0] = 0;
	run->statement = 0;
	run->tag_slot = NULL;
	run->is_queryprofs = run->is_traced = false;
	__atomic_store_n(&run->session, session, __ATOMIC_RELAXED);
	run->query.session = session->number;
	run->query.database = session->database;
	run->query.library = session->library->name;
	run->query.text = NULL;
	run->query.publish_after_ns = QUERY_NOT_PUBLISHED; /* it may be a preparation */
	run->vm_steps = 0;
	run->query.counts.start.bytecode = 0;
	module_counts_forget(run->module_counts);
}

static void start(struct run *run)
{
	run->prepared = false;
	run->tag_thread = NULL;
	run->query.query_id = NULL;
	run->query.is_logged = run->settings.log;
	run->query.rows = 0;
	storing_begin(); /* samples will be written */
	if (calling_current)
		run_count_started(calling_current);
}

/* Finds the statement's values that are read in place: its counters and, for the handler, the
 * running opcode. */
static void locate_statement_values(struct run *run)
{
	const struct opcode_library *opcodes = opcode_library(run->session->library);
	const char *stmt = (const char *)run->stmt;

	run->counters = stmt && opcodes && opcodes->counters && !opcodes->scan_status
	                        ? (const volatile int *)(stmt + opcodes->counters) + FIRST_COUNTER
	                        : NULL;
	run->query.counts.statement = stmt;
	run->query.counts.opcodes = opcodes ? &opcodes->locations : NULL;
}

static void start_query(struct run *run, struct thread *thread)
{
	query_start(&run->query, thread);
	/* Relaxed: a change now takes effect at the next run. */
	run->query.counts.labels = __atomic_load_n(&run->session->labels.number, __ATOMIC_RELAXED);
}

struct run *run_begin(const struct run_begin *how)
{
	struct session *session = how->session;
	struct run *run = how->stmt ? acquire_ended(session, how->stmt, how->owner) : NULL;
	bool is_again = run != NULL;

	if (!run && !(run = runs_claim(how->stmt, how->owner)))
		return NULL;
	if (how->is_private) {
		run_count_private(session);
	} else if (!session_hold(session)) {
		runs_free(run);
		return NULL;
	}
	__atomic_store_n(&run->is_private, how->is_private, __ATOMIC_RELAXED);
	if (!is_again)
		set_up(run, session, how->stmt);
	if (!is_again || !runs_has_settings_of(run, session))
		copy_settings(run);
	run->kind = (uint8_t)how->kind;
	locate_statement_values(run);
	start(run);
	start_query(run, how->thread);
	return run;
}

HOT_PATH bool run_begin_again(struct run *run, struct session *session, const sqlite3_api_routines *api,
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

void runs_acquire_set_query_id(struct run *run)
{
	struct session_settings *settings = &run->session->settings;

	memcpy(run->query_id, settings->query_id, sizeof(run->query_id));
	run->query.query_id = run->query_id;
	open_runs_note_user_id();
	settings->query_id[0] = 0; /* for one statement only */
}

static struct statement_name name_of(const struct run *run, const char *text)
{
	return (struct statement_name){
		.text = text,
		.database = run->query.database,
		.layout = run->stmt ? bytecode_layout(run->session->library, run->stmt, text) : 0,
	};
}

#define FLAGS_AT (sizeof("00-") - 1 + 32 + 1 + 16 + 1)

/* "traceparent='00-TRACE-SPAN-FLAGS'" in a comment, as sqlcommenter writes it. */
static bool is_in_sampled_trace(const char *text)
{
	const char *name = text ? strstr(text, "traceparent") : NULL;
	const char *trace = name ? strstr(name, "00-") : NULL;

	return trace && strnlen(trace, FLAGS_AT + 2) == FLAGS_AT + 2 && trace[FLAGS_AT - 1] == '-' &&
	       strchr("13579bdf", trace[FLAGS_AT + 1]);
}

void runs_name(struct run *run, const struct statement_name *name)
{
	run->statement = statement_stats_find(name);
	run->is_traced = is_in_sampled_trace(name->text);
	if (run->is_traced)
		run->settings.min_duration_ns = 0;
}

void runs_name_statement(struct run *run)
{
	struct statement_name name;

	if (!run->settings.log || run->statement)
		return;
	name = name_of(run, run->query.text);
	runs_name(run, &name);
}

void runs_name_anew(struct run *run)
{
	const struct statement_name name = name_of(run, sqlite3_sql(run->stmt));

	run->statement = statement_stats_find(&name);
}

void runs_name_again(struct run *run)
{
	run->statement = 0;
	runs_name_statement(run);
}

void runs_announce(struct run *run)
{
	run->query.text = sqlite3_sql(run->stmt);
	query_make_due(&run->query);
}

void runs_describe(struct run *run)
{
	run->query.text = sqlite3_sql(run->stmt);
	run_read_at_start(run);
	if (run->at_start[COUNTED_VM_STEPS] < run->vm_steps || !statement_stats_is_found(run->statement))
		runs_name_again(run);
	runs_acquire_query_id(run);
	runs_publish_if_open(run);
	query_show(&run->query);
}

bool runs_is_current(const struct run *run)
{
	return sqlite3_sql(run->stmt) == run->query.text && (run->prepared || sqlite3_stmt_busy(run->stmt));
}

void runs_announce_operation(struct run *run, const char *label)
{
	size_t size = strlen(label);

	/* A long name is cut, but the end of the call is kept. */
	if (size >= sizeof(run->label))
		size = sizeof(run->label) - 2;
	memcpy(run->label, label, size);
	if (label[size])
		run->label[size++] = ')';
	run->label[size] = 0;
	run->query.text = run->label;
	query_make_due(&run->query);
}

void runs_describe_operation(struct run *run, const char *database)
{
	run->database = database ? strdup(database) : NULL;
	if (run->database)
		run->query.database = run->database;
	runs_publish_if_open(run);
	query_show(&run->query);
}

/* --- it changes its key ------------------------------------------------------------------- */

/* Claims a place for a run that continues another run of the same session. */
HOT_INLINE struct run *claim_after(const struct run *run, const void *key, sqlite3_stmt *stmt)
{
	struct run *next = runs_claim(key, run->owner);

	if (!next)
		return NULL;
	set_up(next, run->session, stmt);
	__atomic_store_n(&next->is_private, run->is_private, __ATOMIC_RELAXED);
	next->is_queryprofs = run->is_queryprofs;
	next->kind = run->kind;
	next->prepared = false;
	next->tag_thread = NULL;
	next->settings = run->settings;
	next->is_traced = run->is_traced;
	next->statement = run->statement;
	return next;
}

struct run *runs_keep_ended(struct run *preparation, sqlite3_stmt *stmt)
{
	const struct run_start *start = &preparation->query.counts.start;
	struct run *run;

	query_hide(&preparation->query);
	preparation->query.text = sqlite3_sql(stmt);
	run = preparation->query.text ? claim_after(preparation, stmt, stmt) : NULL;
	if (run && !runs_count_kept(run)) {
		runs_free(run);
		return NULL;
	}
	if (!run)
		return NULL;
	locate_statement_values(run);
	run->query.counts.start.bytecode = start->bytecode;
	run->query.counts.start.opcodes = start->opcodes;
	run->query.text = preparation->query.text;
	run->query.is_logged = run->settings.log;
	runs_publish_if_open(run);
	query_mark(&run->query);
	__atomic_store_n(&run->session->has_kept, true, __ATOMIC_RELAXED);
	/* Release: as in runs_give_back(). */
	__atomic_store_n(&run->owner, RUN_ENDED, __ATOMIC_RELEASE);
	return run;
}

static void pause_prepared(struct run *run, sqlite3_stmt *stmt)
{
	query_pause(&run->query);
	run->query.text = sqlite3_sql(stmt);
	if (!run->is_queryprofs)
		query_make_due(&run->query); /* the host may free its own text */
	runs_set_statement(run, stmt);
	locate_statement_values(run);
	run->prepared = true;
	run_read_at_start(run);
}

static void move_texts(struct run *to, struct run *from)
{
	to->database = from->database;
	from->database = NULL;
	memcpy(to->query_id, from->query_id, sizeof(to->query_id));
	memcpy(to->label, from->label, sizeof(to->label));
	if (from->query.query_id)
		to->query.query_id = to->query_id;
	if (from->label[0])
		to->query.text = to->label;
}

void run_move(struct run *run, const void *key)
{
	struct run *moved = claim_after(run, key, NULL);

	if (!moved) {
		runs_release(run);
		return;
	}
	/* No handler counts in it now, because it has no tag. */
	query_hide(&run->query);
	query_hand_over(&moved->query, &run->query);
	run->query.span.id = 0; /* now belongs to the other one */
	move_texts(moved, run);
	runs_free(run); /* its place; the run itself stays open */
	if (runs_is_preparation(moved))
		pause_prepared(moved, (sqlite3_stmt *)key);
	else
		query_show(&moved->query);
	runs_give_back(moved);
}

void runs_hide_key(struct run *run)
{
	/* No handle has the address of a run. Relaxed: the owner keeps it. */
	__atomic_store_n(runs_key(run), run, __ATOMIC_RELAXED);
}
