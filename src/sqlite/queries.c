/*
 * The table of open runs, and what begins and ends them.
 *
 * A run is found by its statement in a table that is never unmapped: the handler
 * counts in it, on whatever thread the statement is stepped. SQLite lets one
 * thread at a time work on a statement, so an entry needs no lock; only claiming
 * one is a compare-and-swap.
 */
#include "queries.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <pthread.h>

#include "sampler/query.h"
#include "sampler/sampler.h"

#define RUNS 8192u /* a power of two */
#define WINDOW 16u /* slots in which a statement may stand */

/* What SQLite counts for a statement over all its runs; read at both ends. */
static const int statement_counters[] = {
	SQLITE_STMTSTATUS_VM_STEP,
	SQLITE_STMTSTATUS_FULLSCAN_STEP,
	SQLITE_STMTSTATUS_SORT,
	SQLITE_STMTSTATUS_AUTOINDEX,
};
#define STATEMENT_COUNTERS (sizeof statement_counters / sizeof *statement_counters)

struct run {
	struct query_run query;
	sqlite3_stmt *stmt;
	struct session *session;
	const volatile int *mutex_owner; /* what a traced run's tag points to */
	uint64_t rows;
	bool own; /* the profiler's, see queries_disown() */
	int at_start[STATEMENT_COUNTERS];
	char query_id[QUERY_ID_MAX + 1];
};

struct run_table {
	sqlite3_stmt *keys[RUNS]; /* apart from the runs: a window is two cache lines */
	struct run runs[RUNS];
};

static struct run_table *table;
static uint64_t counters[QUERIES_COUNTERS];

/* Sessions that sample, or have open runs from when they did. While there is none,
 * a step costs one look at this. */
uint32_t queries_watched_sessions;

/* The run whose step this thread is in, hooked; the one that its newest trace
 * event began, traced. */
static __thread struct run *running;
static __thread struct run *traced;
static __thread sqlite3_stmt *newest_row; /* whose step gave the newest row */
static __thread unsigned suspended;

static void count(enum queries_counter which)
{
	__atomic_add_fetch(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t queries_counter(enum queries_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

static struct run_table *get_table(void)
{
	struct run_table *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE), *made;

	if (now)
		return now;
	made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (!__atomic_compare_exchange_n(&table, &now, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(made, sizeof *made); /* another thread was first */
		return now;
	}
	return made;
}

static uint32_t window_of(const sqlite3_stmt *stmt)
{
	return (uint32_t)((uintptr_t)stmt * 0x9E3779B97F4A7C15ull >> 40) & (RUNS - 1) & ~(WINDOW - 1);
}

static struct run *find_run(const sqlite3_stmt *stmt)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t first = window_of(stmt);

	for (uint32_t i = first; runs && i < first + WINDOW; i++)
		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) == stmt)
			return &runs->runs[i];
	return NULL;
}

static struct run *claim_run(sqlite3_stmt *stmt)
{
	struct run_table *runs = get_table();
	uint32_t first = window_of(stmt);

	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		sqlite3_stmt *empty = NULL;

		/* acquire: with the release of whoever had it before */
		if (__atomic_compare_exchange_n(&runs->keys[i], &empty, stmt, false,
		                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return &runs->runs[i];
	}
	count(QUERIES_UNTRACKED);
	return NULL;
}

static void release_run(struct run *run)
{
	__atomic_sub_fetch(&run->session->open_runs, 1, __ATOMIC_RELAXED);
	run->stmt = NULL;
	run->session = NULL;
	__atomic_store_n(&run->mutex_owner, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&table->keys[run - table->runs], NULL, __ATOMIC_RELEASE);
}

static struct run *begin_run(struct session *session, sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *run = claim_run(stmt);

	if (!run)
		return NULL;
	run->stmt = stmt;
	run->session = session;
	run->rows = 0;
	run->own = false;
	__atomic_add_fetch(&session->open_runs, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < STATEMENT_COUNTERS; i++)
		run->at_start[i] = sqlite3_stmt_status(stmt, statement_counters[i], 0);
	run->query_id[0] = 0;
	if (session->settings.query_id[0]) { /* for one statement only */
		memcpy(run->query_id, session->settings.query_id, sizeof run->query_id);
		session->settings.query_id[0] = 0;
	}
	query_start(&run->query, thread);
	count(QUERIES_STARTED);
	return run;
}

static bool worth_logging(const struct run *run)
{
	const struct session_settings *settings = &run->session->settings;

	if (!settings->log_queries || run->own)
		return false;
	for (int type = 0; type < TRACE_TYPES; type++)
		if (__atomic_load_n(&run->query.counts.samples[type], __ATOMIC_RELAXED))
			return true;
	return query_lasted(&run->query, settings->log_queries_min_query_duration_ns);
}

static void end_run(struct run *run, struct thread *thread, int rc)
{
	if (worth_logging(run)) {
		sqlite3_stmt *stmt = run->stmt;
		sqlite3 *db = run->session->db;
		uint64_t spent[STATEMENT_COUNTERS];
		struct query_end end = {
			.query_id = run->query_id[0] ? run->query_id : NULL,
			.query = sqlite3_sql(stmt),
			.database = sqlite3_db_filename(db, "main"),
			.result_rows = run->rows,
			.memory_usage = (uint64_t)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_MEMUSED, 0),
		};

		for (size_t i = 0; i < STATEMENT_COUNTERS; i++)
			spent[i] = (uint32_t)(sqlite3_stmt_status(stmt, statement_counters[i], 0) - run->at_start[i]);
		end.vm_steps = spent[0];
		end.fullscan_steps = spent[1];
		end.sorts = spent[2];
		end.autoindexes = spent[3];
		if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
			end.exception_code = rc;
			/* SQLite has no message yet for what the caller gave up. */
			end.exception = rc == SQLITE_ABORT ? sqlite3_errstr(rc) : sqlite3_errmsg(db);
		}
		query_finish(&run->query, thread, &end);
		count(QUERIES_LOGGED);
	}
	release_run(run);
}

static void push_run(struct run *run, struct thread *thread)
{
	const struct session_settings *settings = &run->session->settings;
	struct query_tag tag = {
		.key = run->query.key,
		.counts = &run->query.counts,
		.mutex_owner = run->session->traced && run->mutex_owner ? &run->mutex_owner : NULL,
	};

	for (int type = 0; type < TRACE_TYPES && !run->own; type++)
		tag.period_ns[type] = settings->period_ns[type];
	sampler_push(thread, &tag);
}

static bool session_samples(const struct session *session)
{
	for (int type = 0; type < TRACE_TYPES; type++)
		if (session->settings.period_ns[type])
			return true;
	return false;
}

void queries_watch(struct session *session)
{
	if (session_samples(session) && !__atomic_exchange_n(&session->watched, true, __ATOMIC_RELAXED))
		__atomic_add_fetch(&queries_watched_sessions, 1, __ATOMIC_RELAXED);
}

static void unwatch(struct session *session)
{
	if (__atomic_exchange_n(&session->watched, false, __ATOMIC_RELAXED))
		__atomic_sub_fetch(&queries_watched_sessions, 1, __ATOMIC_RELAXED);
}

/* The open run of a statement about to be stepped, NULL when it has none. */
static struct run *continued_run(const struct session *session, sqlite3_stmt *stmt)
{
	struct run *run = find_run(stmt);

	if (!run || (run->session == session && sqlite3_stmt_busy(stmt)))
		return run;
	/* It ended where we did not see it; the statement may be another by now, in the
	 * same place. */
	count(QUERIES_LOST);
	release_run(run);
	return NULL;
}

bool queries_enter(struct query_step *step, sqlite3_stmt *stmt)
{
	struct session *session;
	bool samples, has_runs;

	/* A step inside a step belongs to the outer one. */
	if (running || suspended || !stmt)
		return false;
	session = session_of(sqlite3_db_handle(stmt));
	if (!session || session->traced)
		return false;
	samples = session_samples(session);
	has_runs = __atomic_load_n(&session->open_runs, __ATOMIC_RELAXED) > 0;
	if (!samples && !has_runs) {
		unwatch(session);
		return false;
	}
	step->thread = sampler_thread();
	if (!step->thread)
		return false;
	step->run = has_runs ? continued_run(session, stmt) : NULL;
	if (!step->run && samples)
		step->run = begin_run(session, stmt, step->thread);
	if (!step->run)
		return false;
	push_run(step->run, step->thread);
	running = step->run;
	return true;
}

void queries_leave(const struct query_step *step, int rc)
{
	running = NULL;
	newest_row = NULL;
	sampler_pop(step->thread);
	if (rc == SQLITE_ROW) {
		step->run->rows++;
		newest_row = step->run->stmt;
	} else {
		end_run(step->run, step->thread, rc);
	}
}

/* The statement's open run, when its end is ours to see on this thread. */
static struct run *run_to_end(sqlite3_stmt *stmt)
{
	struct session *session;

	if (queries_idle() || running || suspended || !stmt)
		return NULL;
	session = session_of(sqlite3_db_handle(stmt));
	if (!session || session->traced || !__atomic_load_n(&session->open_runs, __ATOMIC_RELAXED))
		return NULL;
	return find_run(stmt);
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
		end_run(run, thread, SQLITE_ABORT);
}

void queries_disown(void)
{
	struct run *run = running ? running : traced;
	struct thread *thread = run && !run->own ? sampler_thread() : NULL;

	if (!thread)
		return;
	run->own = true;
	sampler_pop(thread);
	push_run(run, thread);
}

static int reset_and_end(struct run *run, int (*reset)(sqlite3_stmt *))
{
	struct thread *thread = sampler_thread();
	sqlite3_stmt *stmt = run->stmt;
	int rc;

	if (!thread) {
		release_run(run);
		return reset(stmt);
	}
	push_run(run, thread);
	running = run;
	rc = reset(stmt);
	running = NULL;
	sampler_pop(thread);
	end_run(run, thread, rc);
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

/* --- trace fall-back ------------------------------------------------------ */

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
	run = find_run(stmt);
	if (run)
		return; /* prepared anew in the middle of its run */
	run = begin_run(session, stmt, thread);
	if (!run)
		return;
	leave_traced(thread);
	__atomic_store_n(&run->mutex_owner, session->mutex_owner, __ATOMIC_RELAXED);
	push_run(run, thread);
	traced = run;
}

static void trace_finished(sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *run = find_run(stmt);
	int rc;

	if (!run)
		return;
	if (run == traced)
		leave_traced(thread);
	rc = sqlite3_errcode(run->session->db);
	end_run(run, thread, rc);
}

static int on_trace(unsigned event, void *context, void *subject, void *detail)
{
	struct session *session = context;
	struct thread *thread;

	if (suspended || !(thread = sampler_thread()))
		return 0;
	if (event == SQLITE_TRACE_STMT) {
		const char *text = detail;

		/* "--": a trigger of a statement that runs already */
		if (session_samples(session) && !(text && text[0] == '-' && text[1] == '-'))
			trace_started(session, subject, thread);
	} else if (event == SQLITE_TRACE_PROFILE) {
		trace_finished(subject, thread);
	}
	return 0;
}

void queries_trace(struct session *session)
{
	sqlite3_trace_v2(session->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, on_trace, session);
}

void queries_forget(struct session *session)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	bool had_traced = false;

	if (traced && traced->session == session)
		leave_traced(sampler_thread());
	for (uint32_t i = 0; runs && i < RUNS; i++) {
		/* Another connection's runs come and go meanwhile; ours cannot. */
		if (!__atomic_load_n(&runs->keys[i], __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&runs->runs[i].session, __ATOMIC_RELAXED) != session)
			continue;
		had_traced |= runs->runs[i].mutex_owner != NULL;
		release_run(&runs->runs[i]);
	}
	/* Nothing more will come of it. */
	unwatch(session);
	/* Another thread's handler may be looking at the mutex that goes now. */
	if (had_traced)
		sampler_quiesce();
}

void queries_suspend(void)
{
	suspended++;
}

void queries_resume(void)
{
	suspended--;
}
