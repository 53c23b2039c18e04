/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/runs.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "handler/running.h"
#include "query/look.h"
#include "query/statement_stats.h"
#include "sampler/push.h"
#include "sampler/quiesce.h"
#include "store/store.h"
#include "watch/opcode_places.h"

#define RUNS 8192u /* a power of two */
#define WINDOW 16u /* slots in which a statement may stand */

static const int statement_counters[STATEMENT_COUNTERS] = {
	SQLITE_STMTSTATUS_VM_STEP,   SQLITE_STMTSTATUS_FULLSCAN_STEP, SQLITE_STMTSTATUS_SORT,
	SQLITE_STMTSTATUS_AUTOINDEX, SQLITE_STMTSTATUS_REPREPARE,
};

struct run_table {
	const void *keys[RUNS]; /* apart from the runs: a window is two cache lines */
	struct run runs[RUNS];
};

static struct run_table *table;
static uint64_t counters[RUNS_COUNTERS];

void runs_count(enum run_counter which)
{
	__atomic_add_fetch(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t runs_counter(enum run_counter which)
{
	return which == RUNS_STARTED ? calling_runs() : __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

/* --- the table ------------------------------------------------------------------------ */

static struct run_table *get_table(void)
{
	struct run_table *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE), *made;

	if (now)
		return now;
	made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	            -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (!__atomic_compare_exchange_n(&table, &now, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(made, sizeof *made); /* another thread was first */
		return now;
	}
	return made;
}

static uint32_t window_of(const void *key)
{
	return (uint32_t)((uintptr_t)key * 0x9E3779B97F4A7C15ull >> 40) & (RUNS - 1) & ~(WINDOW - 1);
}

/* Until the run has its owner it is RUN_FREE: nobody takes it. */
static struct run *claim(const void *key, uint64_t owner)
{
	struct run_table *runs = get_table();
	uint32_t first =
		key ? window_of(key) : (uint32_t)(owner / CALL_NUMBER_STEP) & (RUNS - 1) & ~(WINDOW - 1);

	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		const void *empty = NULL;

		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED))
			continue;
		/* Acquire: with the release in free_slot(). */
		if (!__atomic_compare_exchange_n(&runs->keys[i], &empty, key ? key : &runs->runs[i], false,
		                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&runs->runs[i].owner, owner, __ATOMIC_RELAXED);
		return &runs->runs[i];
	}
	runs_count(RUNS_UNTRACKED);
	return NULL;
}

static void set_statement(struct run *run, sqlite3_stmt *stmt)
{
	/* Relaxed: runs_take_guess() looks again when it has the run. */
	__atomic_store_n(&run->stmt, stmt, __ATOMIC_RELAXED);
}

static const void **key_of(const struct run *run)
{
	return &table->keys[run - table->runs];
}

static void free_slot(struct run *run)
{
	query_hide(&run->query);
	if (run->database)
		free(run->database);
	run->database = NULL;
	set_statement(run, NULL);
	run->session = NULL;
	__atomic_store_n(&run->mutex_owner, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&run->owner, RUN_FREE, __ATOMIC_RELAXED);
	/* Release: the next one finds the slot as it is left. */
	__atomic_store_n(key_of(run), NULL, __ATOMIC_RELEASE);
}

/* --- owners --------------------------------------------------------------------------- */

static bool take(struct run *run, uint64_t from, uint64_t to)
{
	/* Acquire: what the owner before did to the run, see runs_give_back(). */
	return __atomic_compare_exchange_n(&run->owner, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

struct run *runs_take(const void *key, uint64_t owner, bool *is_taken)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t first = window_of(key);

	*is_taken = false;
	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		struct run *run = &runs->runs[i];

		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) != key)
			continue;
		if (!take(run, RUN_OPEN, owner)) {
			*is_taken = true;
			return NULL;
		}
		/* It cannot change hands any more, but may have before. */
		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) == key)
			return run;
		runs_give_back(run);
	}
	return NULL;
}

bool runs_take_private(struct run *run, const struct session *session, const sqlite3_stmt *stmt,
                       uint64_t owner)
{
	/* An open run of this session cannot change hands now. */
	if (__atomic_load_n(&run->owner, __ATOMIC_RELAXED) != RUN_OPEN || run->stmt != stmt ||
	    !runs_is_of_session(run, session))
		return false;
	__atomic_store_n(&run->owner, owner, __ATOMIC_RELAXED);
	return true;
}

void runs_give_back_private(struct run *run, const struct thread *thread)
{
	struct session *session = run->session;

	if (session_enter_private(session, thread->id)) {
		__atomic_store_n(&run->owner, RUN_OPEN, __ATOMIC_RELAXED);
		session_leave_private(session);
	} else {
		runs_give_back(run);
	}
}

/* The one that ends reads some numbers and writes a record. In a forked child it may be a
 * thread that is not there. */
#define END_NS NS_PER_S

static void wait_for_end(const struct run *run, uint64_t owner)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC_COARSE);

	/* Acquire: what it has read, it has read before. */
	while (__atomic_load_n(&run->owner, __ATOMIC_ACQUIRE) == owner &&
	       clock_ns(CLOCK_MONOTONIC_COARSE) - start < END_NS)
		sched_yield();
}

void runs_statement_goes(const sqlite3_stmt *stmt)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t first = window_of(stmt);

	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		struct run *run = &runs->runs[i];
		uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) != stmt)
			continue;
		/* Its statement is ours: the run can only end meanwhile. Sequentially consistent, as
		 * the other's: one of the two sees the other's flag. */
		while (owner > RUN_OPEN && !(owner & OWNER_FLAGS) &&
		       !__atomic_compare_exchange_n(&run->owner, &owner, owner | OWNER_GONE, false,
		                                    __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
			;
		if (owner > RUN_OPEN && owner & OWNER_ENDS)
			wait_for_end(run, owner);
	}
}

bool runs_claim_end(struct run *run)
{
	uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED);

	/* As in runs_statement_goes(). */
	return !(owner & OWNER_GONE) &&
	       __atomic_compare_exchange_n(&run->owner, &owner, owner | OWNER_ENDS, false, __ATOMIC_SEQ_CST,
	                                   __ATOMIC_RELAXED);
}

/* Of a private run. */
static void uncount(struct session *session)
{
	bool was_inside = session->is_inside;

	if (thread_current && session_enter_private(session, thread_current->id)) {
		__atomic_store_n(&session->private_runs, session->private_runs - 1, __ATOMIC_RELAXED);
		if (!was_inside)
			session_leave_private(session);
	} else {
		session_share(session);
		__atomic_sub_fetch(&session->private_runs, 1, __ATOMIC_RELAXED);
	}
}

void runs_release(struct run *run)
{
	struct session *session = run->session;
	bool is_there = runs_is_of_session(run, session), is_private = run->is_private;

	runs_pop(run);
	free_slot(run);
	if (!is_private)
		session_release(session);
	else if (is_there)
		uncount(session);
}

void runs_lose(struct run *run, uint64_t owner)
{
	/* The call may return this very moment, on another thread that continues its coroutine:
	 * one of the two has the run. */
	if (!take(run, owner, RUN_FREE) && !take(run, owner | OWNER_GONE, RUN_FREE))
		return;
	runs_count(RUNS_LOST);
	runs_release(run);
}

void runs_forget(struct session *session)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	bool had_traced = false;

	if (!session_has_runs(session))
		return;
	session_share(session);
	for (uint32_t i = 0; runs && i < RUNS; i++) {
		struct run *run = &runs->runs[i];

		if (!__atomic_load_n(&runs->keys[i], __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&run->session, __ATOMIC_RELAXED) != session ||
		    !take(run, RUN_OPEN, RUN_FREE))
			continue;
		/* Another connection's runs come and go meanwhile; this one's cannot. */
		if (run->session != session) {
			runs_give_back(run);
			continue;
		}
		had_traced |= run->mutex_owner != NULL;
		runs_release(run);
	}
	/* Another thread's handler may be looking at the mutex that goes now. */
	if (had_traced)
		sampler_quiesce();
}

void runs_lose_left(struct calling *calling, const void *frame)
{
	uint64_t number;
	struct run *run;

	while (calling->used && calling_reset_left(calling, frame, &run, &number))
		if (run)
			runs_lose(run, number);
}

/* --- the thread's tag ------------------------------------------------------------------- */

static void push_anew(struct run *run, struct thread *thread, const void *frame)
{
	struct query_tag tag = {
		.key = run->own ? (struct query_key){ 0 } : run->query.key,
		.counts = &run->query.counts,
		.frame = (uintptr_t)frame,
		.frame_return = frame ? frame_return_address((uintptr_t)frame) : 0,
		.mutex_owner = run->mutex_owner ? &run->mutex_owner : NULL,
	};

	for (int clock = 0; clock < TIMER_CLOCKS && !run->own; clock++)
		tag.period_ns[clock] = run->settings.period_ns[clock];
	run->tag_slot = thread;
	run->tag = sampler_push(thread, &tag);
}

void runs_push(struct run *run, struct thread *thread, const void *frame)
{
	const struct opcode_library *opcodes = opcode_library(run->session->library);

	run->query.counts.statement = run->stmt;
	run->query.counts.opcodes = opcodes ? &opcodes->places : NULL;
	run->tag_thread = thread;
	run->tag_frame = frame;
	if (frame && run->tag_slot == thread && sampler_push_again(thread, run->tag, frame))
		return;
	push_anew(run, thread, frame);
}

void runs_pop(struct run *run)
{
	if (!run->tag_thread)
		return;
	sampler_remove(run->tag_thread, run->tag);
	run->tag_thread = NULL;
}

/* --- a run begins ----------------------------------------------------------------------- */

void runs_read_counters(sqlite3_stmt *stmt, int values[STATEMENT_COUNTERS])
{
	int (*status)(sqlite3_stmt *, int, int) = sqlite3_stmt_status;

	for (int i = 0; i < STATEMENT_COUNTERS; i++)
		values[i] = status(stmt, statement_counters[i], 0);
}

static void copy_settings(struct run_settings *to, const struct session_settings *from)
{
	for (int clock = 0; clock < TIMER_CLOCKS; clock++)
		to->period_ns[clock] = from->period_ns[clock];
	to->log = from->log_queries;
	to->log_parameters = from->log_query_parameters;
	to->min_duration_ns = from->log_queries_min_query_duration_ns;
}

struct run *runs_begin(struct session *session, sqlite3_stmt *stmt, uint64_t owner, struct thread *thread,
                       bool is_private)
{
	struct run *run = claim(stmt, owner);

	if (!run)
		return NULL;
	if (is_private) {
		__atomic_store_n(&session->private_runs, session->private_runs + 1, __ATOMIC_RELAXED);
	} else if (!session_hold(session)) {
		free_slot(run);
		return NULL;
	}
	__atomic_store_n(&run->is_private, is_private, __ATOMIC_RELAXED);
	set_statement(run, stmt);
	run->label[0] = 0;
	run->own = run->prepared = false;
	run->statement = 0;
	run->tag_thread = run->tag_slot = NULL;
	__atomic_store_n(&run->session, session, __ATOMIC_RELAXED);
	copy_settings(&run->settings, &session->settings);
	run->query.session = session->number;
	run->query.database = session->database;
	run->query.library = session->library->name;
	run->query.text = NULL;
	run->query.query_id = NULL;
	run->query.is_logged = run->settings.log;
	run->query.rows = 0;
	store_start(); /* whoever samples will write */
	query_start(&run->query, thread);
	/* The thread's own, as begin_run()'s call is. */
	if (calling_current)
		__atomic_store_n(&calling_current->runs, calling_current->runs + 1, __ATOMIC_RELAXED);
	return run;
}

void runs_take_query_id(struct run *run)
{
	struct session_settings *settings = &run->session->settings;

	if (!settings->query_id[0])
		return;
	memcpy(run->query_id, settings->query_id, sizeof run->query_id);
	run->query.query_id = run->query_id;
	settings->query_id[0] = 0; /* for one statement only */
}

void runs_name_statement(struct run *run)
{
	const struct statement_name name = { run->query.text, run->query.database };

	if (run->settings.log && !run->statement)
		run->statement = statement_stats_find(&name);
}

void runs_describe(struct run *run)
{
	run->query.text = sqlite3_sql(run->stmt);
	runs_name_statement(run);
	runs_read_counters(run->stmt, run->at_start);
	runs_take_query_id(run);
	query_show(&run->query);
}

bool runs_is_current(const struct run *run)
{
	return sqlite3_sql(run->stmt) == run->query.text && (run->prepared || sqlite3_stmt_busy(run->stmt));
}

void runs_describe_operation(struct run *run, const char *label, const char *database)
{
	size_t size = strlen(label);

	/* A long name is cut, the end of the call is there. */
	if (size >= sizeof run->label)
		size = sizeof run->label - 2;
	memcpy(run->label, label, size);
	if (label[size])
		run->label[size++] = ')';
	run->label[size] = 0;
	run->query.text = run->label;
	run->database = database ? strdup(database) : NULL;
	if (run->database)
		run->query.database = run->database;
	query_show(&run->query);
}

/* --- it changes its name ------------------------------------------------------------------ */

struct run *runs_rename(struct run *run, const void *key)
{
	struct run *named = claim(key, run->owner);

	if (!named) {
		runs_release(run);
		return NULL;
	}
	/* No handler counts in it now: it has no tag. */
	query_hide(&run->query);
	query_hand_over(&named->query, &run->query);
	set_statement(named, NULL);
	__atomic_store_n(&named->is_private, run->is_private, __ATOMIC_RELAXED);
	named->own = run->own;
	named->prepared = false;
	named->tag_thread = named->tag_slot = NULL;
	named->settings = run->settings;
	named->statement = run->statement;
	named->database = run->database;
	run->database = NULL;
	__atomic_store_n(&named->session, run->session, __ATOMIC_RELAXED);
	memcpy(named->query_id, run->query_id, sizeof named->query_id);
	memcpy(named->label, run->label, sizeof named->label);
	if (run->query.query_id)
		named->query.query_id = named->query_id;
	if (run->label[0])
		named->query.text = named->label;
	free_slot(run); /* its place; the run itself stays open */
	return named;
}

void runs_hide_key(struct run *run)
{
	/* No handle has the address of a run. Relaxed: the owner keeps it. */
	__atomic_store_n(key_of(run), run, __ATOMIC_RELAXED);
}

void runs_prepared(struct run *run, sqlite3_stmt *stmt)
{
	struct run *named = runs_rename(run, stmt);

	if (!named)
		return;
	query_pause(&named->query);
	named->query.text = sqlite3_sql(stmt);
	runs_name_statement(named);
	set_statement(named, stmt);
	named->prepared = true;
	runs_read_counters(stmt, named->at_start);
	runs_give_back(named);
}
