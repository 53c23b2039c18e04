#include "watch/runs.h"

#include <string.h>
#include <sys/mman.h>

#include "sampler/sampler.h"
#include "store/store.h"

#define RUNS 8192u /* a power of two */
#define WINDOW 16u /* slots in which a statement may stand */

static const int statement_counters[STATEMENT_COUNTERS] = {
	SQLITE_STMTSTATUS_VM_STEP,
	SQLITE_STMTSTATUS_FULLSCAN_STEP,
	SQLITE_STMTSTATUS_SORT,
	SQLITE_STMTSTATUS_AUTOINDEX,
};

struct run_table {
	const void *keys[RUNS]; /* apart from the runs: a window is two cache lines */
	struct run runs[RUNS];
};

static struct run_table *table;
static uint64_t counters[QUERIES_COUNTERS];

void runs_count(enum queries_counter which)
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

struct run *runs_find(const void *key)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t first = window_of(key);

	for (uint32_t i = first; runs && i < first + WINDOW; i++)
		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) == key)
			return &runs->runs[i];
	return NULL;
}

static struct run *claim(const void *key)
{
	struct run_table *runs = get_table();
	uint32_t first = window_of(key);

	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		const void *empty = NULL;

		/* acquire: with the release of whoever had it before */
		if (__atomic_compare_exchange_n(&runs->keys[i], &empty, key, false, __ATOMIC_ACQUIRE,
		                                __ATOMIC_RELAXED))
			return &runs->runs[i];
	}
	runs_count(QUERIES_UNTRACKED);
	return NULL;
}

static void free_slot(struct run *run)
{
	query_hide(&run->query);
	run->stmt = NULL;
	run->session = NULL;
	__atomic_store_n(&run->mutex_owner, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&table->keys[run - table->runs], NULL, __ATOMIC_RELEASE);
}

void runs_release(struct run *run)
{
	__atomic_sub_fetch(&run->session->open_runs, 1, __ATOMIC_RELAXED);
	free_slot(run);
}

bool runs_release_all(const struct session *session)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	bool had_traced = false;

	for (uint32_t i = 0; runs && i < RUNS; i++) {
		/* Another connection's runs come and go meanwhile; ours cannot. */
		if (!__atomic_load_n(&runs->keys[i], __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&runs->runs[i].session, __ATOMIC_RELAXED) != session)
			continue;
		had_traced |= runs->runs[i].mutex_owner != NULL;
		runs_release(&runs->runs[i]);
	}
	return had_traced;
}

static void read_counters(sqlite3_stmt *stmt, int values[STATEMENT_COUNTERS])
{
	for (int i = 0; i < STATEMENT_COUNTERS; i++)
		values[i] = sqlite3_stmt_status(stmt, statement_counters[i], 0);
}

static void take_query_id(struct run *run)
{
	struct session_settings *settings = &run->session->settings;

	if (!settings->query_id[0])
		return;
	memcpy(run->query_id, settings->query_id, sizeof run->query_id);
	run->query.query_id = run->query_id;
	settings->query_id[0] = 0; /* for one statement only */
}

static struct run *begin(struct session *session, const void *key, struct thread *thread)
{
	struct run *run = claim(key);

	if (!run)
		return NULL;
	run->stmt = NULL;
	run->label[0] = 0;
	run->session = session;
	run->own = false;
	run->prepared = false;
	run->query.session = session->number;
	run->query.database = session->database;
	run->query.library = session->library->name;
	run->query.text = NULL;
	run->query.query_id = NULL;
	run->query.rows = 0;
	__atomic_add_fetch(&session->open_runs, 1, __ATOMIC_RELAXED);
	store_start(); /* whoever samples will write */
	query_start(&run->query, thread);
	runs_count(QUERIES_STARTED);
	return run;
}

struct run *runs_begin(struct session *session, sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *run = begin(session, stmt, thread);

	if (!run)
		return NULL;
	run->stmt = stmt;
	run->query.text = sqlite3_sql(stmt);
	read_counters(stmt, run->at_start);
	take_query_id(run);
	query_show(&run->query);
	return run;
}

struct run *runs_begin_prepare(struct session *session, const void *key, const char *text,
                               struct thread *thread)
{
	struct run *run = begin(session, key, thread);

	if (!run)
		return NULL;
	run->query.text = text;
	query_show(&run->query);
	return run;
}

struct run *runs_begin_call(struct session *session, const void *key, struct thread *thread)
{
	struct run *run = begin(session, key, thread);

	if (run)
		take_query_id(run);
	return run;
}

static struct run *rename_run(struct run *run, const void *key)
{
	struct run *named = claim(key);

	if (!named) {
		runs_release(run);
		return NULL;
	}
	/* No handler counts in it now: it is not running. */
	query_hide(&run->query);
	query_hand_over(&named->query, &run->query);
	named->stmt = NULL;
	named->session = run->session;
	named->own = run->own;
	named->prepared = false;
	memcpy(named->query_id, run->query_id, sizeof named->query_id);
	memcpy(named->label, run->label, sizeof named->label);
	if (run->query.query_id)
		named->query.query_id = named->query_id;
	if (run->label[0])
		named->query.text = named->label;
	free_slot(run); /* its place; the run itself stays open */
	return named;
}

void runs_rename(struct run *run, const void *key)
{
	struct run *named = rename_run(run, key);

	if (named)
		query_show(&named->query);
}

void runs_prepared(struct run *run, sqlite3_stmt *stmt, struct thread *thread)
{
	struct run *named = rename_run(run, stmt);

	if (!named)
		return;
	query_pause(&named->query, thread);
	named->query.text = sqlite3_sql(stmt);
	named->stmt = stmt;
	named->prepared = true;
	read_counters(stmt, named->at_start);
}

void runs_first_step(struct run *run, struct thread *thread)
{
	run->prepared = false;
	query_resume(&run->query, thread);
	take_query_id(run);
	if (!run->own)
		query_show(&run->query);
}

bool runs_worth_logging(const struct run *run)
{
	const struct session_settings *settings = &run->session->settings;

	if (!settings->log_queries || run->own)
		return false;
	for (int type = 0; type < TRACE_TYPES; type++)
		if (__atomic_load_n(&run->query.counts.samples[type], __ATOMIC_RELAXED))
			return true;
	return query_lasted(&run->query, settings->log_queries_min_query_duration_ns);
}

static void add_counters(struct query_end *end, const struct run *run)
{
	int now[STATEMENT_COUNTERS];
	uint64_t spent[STATEMENT_COUNTERS];

	read_counters(run->stmt, now);
	for (int i = 0; i < STATEMENT_COUNTERS; i++)
		spent[i] = (uint32_t)(now[i] - run->at_start[i]);
	end->vm_steps = spent[0];
	end->fullscan_steps = spent[1];
	end->sorts = spent[2];
	end->autoindexes = spent[3];
	end->memory_usage = (uint64_t)sqlite3_stmt_status(run->stmt, SQLITE_STMTSTATUS_MEMUSED, 0);
}

#define EXPANDED_MAX 65536

/* The statement with the values that were bound to it, if it is not too long: a value
 * may be a blob of a gigabyte, so SQLite is told its limit for the moment. */
static char *expand(sqlite3 *db, sqlite3_stmt *stmt)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(db);
	char *text;
	int limit;

	sqlite3_mutex_enter(mutex);
	limit = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1);
	if (limit > EXPANDED_MAX)
		sqlite3_limit(db, SQLITE_LIMIT_LENGTH, EXPANDED_MAX);
	text = sqlite3_expanded_sql(stmt);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, limit);
	sqlite3_mutex_leave(mutex);
	return text;
}

static const char *exception_of(const struct run *run, int rc)
{
	/* SQLite has no message yet for what the caller gave up, and none any more for a
	 * call whose connection may be gone. */
	if (rc == SQLITE_ABORT || run->label[0])
		return sqlite3_errstr(rc);
	return sqlite3_errmsg(run->session->db);
}

static void write_line(struct run *run, struct thread *thread, int rc)
{
	const struct session *session = run->session;
	struct query_end end = {
		.query_id = run->query.query_id,
		.query = run->query.text,
		.database = run->label[0] ? run->query.database : sqlite3_db_filename(session->db, "main"),
		.library = session->library->name,
		.was_prepared_only = !run->label[0] && (!run->stmt || run->prepared),
		.result_rows = run->query.rows,
	};
	char *expanded = NULL;

	if (run->stmt)
		add_counters(&end, run);
	if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
		end.exception_code = rc;
		end.exception = exception_of(run, rc);
	}
	if (run->stmt && session->settings.log_query_parameters && sqlite3_bind_parameter_count(run->stmt))
		end.expanded = expanded = expand(session->db, run->stmt);
	query_finish(&run->query, thread, &end);
	sqlite3_free(expanded);
	runs_count(QUERIES_LOGGED);
}

void runs_end(struct run *run, struct thread *thread, int rc)
{
	if (run->prepared) /* and never stepped */
		query_resume(&run->query, thread);
	if (runs_worth_logging(run))
		write_line(run, thread, rc);
	runs_release(run);
}

void queries_thread_ends(const struct thread *thread)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; runs && i < RUNS; i++)
		if (__atomic_load_n(&runs->keys[i], __ATOMIC_ACQUIRE))
			query_settle(&runs->runs[i].query, thread);
}

void runs_push(struct run *run, struct thread *thread, const void *frame)
{
	const struct session_settings *settings = &run->session->settings;
	struct query_tag tag = {
		.key = run->own ? (struct query_key){ 0 } : run->query.key,
		.counts = &run->query.counts,
		.frame = (uintptr_t)frame,
		.frame_return = frame ? frame_return_address((uintptr_t)frame) : 0,
		.mutex_owner = run->session->traced && run->mutex_owner ? &run->mutex_owner : NULL,
	};

	for (int clock = 0; clock < TIMER_CLOCKS && !run->own; clock++)
		tag.period_ns[clock] = settings->period_ns[clock];
	__atomic_store_n(&run->query.working, thread->id, __ATOMIC_RELAXED); /* only to be seen */
	sampler_push(thread, &tag);
}

bool runs_wanted(const struct session *session)
{
	for (int clock = 0; clock < TIMER_CLOCKS; clock++)
		if (session->settings.period_ns[clock])
			return true;
	return false;
}
