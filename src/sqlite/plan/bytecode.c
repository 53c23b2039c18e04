/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/bytecode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hash_table.h"
#include "base/lock.h"
#include "base/text.h"
#include "handover/shared_ring.h"
#include "handover/storing.h"
#include "sqlite/plan/bound_values.h"
#include "sqlite/plan/columns.h"
#include "sqlite/plan/module_methods.h"
#include "sqlite/plan/plan.h"
#include "sqlite/plan/publish.h"
#include "sqlite/plan/virtual_tables.h"
#include "timers/memory_sample.h"

/* More than any useful bytecode; it limits hashing, copying and storing. */
#define OPCODES_MAX 100000u
#define KNOWN_MAX 65536

struct bytecode_due {
	uint64_t bytecode, layout;
	struct hash known; /* its key in the table */
	const struct host_library *library;
	const void *stmt;
	sqlite3 *db;
	uint32_t session; /* its number, because another connection may get this address */
	char *text;
	char *patterned; /* with the patterns that were bound; NULL: none were. Never published */
	struct bytecode_copy bytecodes;
	/* What modules answered when SQLite planned it, which is used instead of calling them; NULL: not
	 * known, and not needed. */
	const struct module_record *answers;
	struct hash filters; /* virtual_filters_hash() */
};

/* Bytecode that was published, or is due: for the trace file that was open, when so many losses and removals
 * of bytecode were known. One that comes later may have been this one's. */
struct known {
	struct hash key;
	uint64_t lost;
	enum bytecode_counter reason; /* that was published, BYTECODE_READ: none */
};

/* No number of losses. */
#define NOT_PUBLISHED UINT64_MAX

LOCK_DEFINE(lock, LOCK_BYTECODE);
static struct hash_table known = HASH_TABLE_OF(struct known, KNOWN_MAX); /* under the lock */
static uint64_t counters[BYTECODE_COUNTERS];

static const struct {
	const char *sentence;
	bool is_lasting;
} reasons[BYTECODE_COUNTERS] = {
#define PLAN_REASON(name, metric, is_lasting, sentence) [name] = { sentence, is_lasting },
	PLANS_MISSING(PLAN_REASON)
#undef PLAN_REASON
};

static void count(enum bytecode_counter which)
{
	__atomic_add_fetch(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t bytecode_counter(enum bytecode_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

static uint64_t recordings; /* atomic: that have ended */

void bytecode_publish_again(void)
{
	__atomic_add_fetch(&recordings, 1, __ATOMIC_RELAXED);
}

static struct hash key_of(struct hash bytecode)
{
	const uint64_t file = storing_here()->file_epoch() + __atomic_load_n(&recordings, __ATOMIC_RELAXED);

	bytecode.first ^= file * 0x9E3779B97F4A7C15ull;
	return bytecode;
}

/* Whether it is to be published: for the first time for the trace file that is open, or again. */
static bool note(struct hash key)
{
	uint64_t lost = storing_here()->bytecode_lost() + shared_ring_plans_lost();
	struct known *entry;
	bool is_due;

	lock_acquire(&lock);
	entry = hash_table_find(&known, key);
	is_due = !entry || entry->lost != lost;
	if (!entry)
		entry = hash_table_add(&known, key);
	if (entry && is_due && entry->lost != NOT_PUBLISHED)
		entry->reason = BYTECODE_READ; /* for another file, or it may have been lost */
	if (entry)
		entry->lost = lost;
	lock_release(&lock);
	return entry && is_due;
}

/* It was not published: its next run with samples tries again. */
static void forget(struct hash key)
{
	struct known *entry;

	lock_acquire(&lock);
	entry = hash_table_find(&known, key);
	if (entry)
		entry->lost = NOT_PUBLISHED;
	lock_release(&lock);
}

/* Whether it may still be published. */
static bool is_forgotten(struct hash key)
{
	const struct known *entry;
	bool is;

	lock_acquire(&lock);
	entry = hash_table_find(&known, key);
	is = entry && entry->lost == NOT_PUBLISHED;
	lock_release(&lock);
	return is;
}

/* The plan is missing for this reason. */
static void refuse(uint64_t bytecode, struct hash key, enum bytecode_counter reason)
{
	struct known *entry;
	bool is_new;

	lock_acquire(&lock);
	entry = hash_table_find(&known, key);
	is_new = entry && entry->reason != reason;
	if (entry)
		entry->reason = reason;
	lock_release(&lock);
	if ((is_new && !publish_missing(bytecode, reasons[reason].sentence)) || !reasons[reason].is_lasting)
		forget(key);
}

/* Until the plan comes, which it may never. */
static void announce(uint64_t bytecode, struct hash key)
{
	refuse(bytecode, key, PLAN_NOT_REACHED);
	note(key);
}

static void refuse_due(const struct bytecode_due *due, enum bytecode_counter reason)
{
	count(reason);
	refuse(due->bytecode, due->known, reason);
}

/* --- at the end of a run ----------------------------------------------------------------------- */

/* Without P1: some opcodes count there. Returns whether they call other bytecode. */
static bool hash_opcodes(struct hash *hash, const struct opcode_library *library, const void *opcodes,
                         uint32_t count)
{
	bool calls = false;

	for (uint32_t i = 0; i < count; i++) {
		const struct opcode_bytes *opcode = opcode_at(library, opcodes, i);

		hash_word(hash, (uint64_t)(uint32_t)opcode->p2 << 32 | (uint32_t)opcode->p3);
		if (library->names[opcode->opcode][0] == 'V')
			virtual_filter_hash(hash, library, opcodes, i);
		calls |= opcode_calls(library, opcode);
	}
	return calls;
}

/* Other statements are not prepared again: the objects that they made exist by now, which SQLite
 * reports to the host's error log, and some PRAGMAs act during preparation. */
static bool has_plan(const char *text)
{
	static const char *const words[] = { "select",  "with",   "values", "insert",
		                             "replace", "update", "delete" };

	text = text_skip_comments(text);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if ((*text | 0x20) == *words[i] && !strncasecmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Only P2: roots of tables and indexes, and jump targets. P3 of the first is the schema's cookie. */
#define LAYOUT_OPCODES 4096u

static uint64_t layout_of(const struct opcode_library *library, const void *opcodes, uint32_t number)
{
	uint64_t layout = 0;

	for (uint32_t i = 0; i < number && i < LAYOUT_OPCODES; i++)
		layout = (layout ^ (uint32_t)opcode_at(library, opcodes, i)->p2) * 0x9E3779B97F4A7C15ull;
	layout ^= layout >> 32;
	return (layout ^ number) * 0x9E3779B97F4A7C15ull;
}

uint64_t bytecode_layout(const struct host_library *of, const void *stmt, const char *text)
{
	const struct opcode_library *library = opcode_library(of);
	const void *opcodes;
	uint32_t number;

	if (!library || !text || !has_plan(text))
		return 0;
	opcodes = opcode_bytecode(library, stmt, &number);
	return opcodes && number <= OPCODES_MAX ? layout_of(library, opcodes, number) : 0;
}

static void free_due(struct bytecode_due *due)
{
	bytecode_copy_free(&due->bytecodes);
	free(due->text);
	free(due->patterned);
	free(due);
}

/* A prepared statement, and the state of its bytecode. */
struct subject {
	const struct session *session;
	const sqlite3_stmt *stmt;
	const char *text;
	const struct opcode_library *opcodes_of;
	const void *opcodes;
	uint32_t number;              /* of opcodes */
	enum bytecode_counter reason; /* why its plan cannot be read */
	bool is_quick;                /* bytecode that it calls is left out, as it takes system calls */
	bool has_called;
	bool is_done; /* a run of it has ended in a step, with what it was bound to */
	uint64_t layout;
	struct hash text_hash, bytecode, key;
	const struct module_record *answers; /* recorded while it was prepared, NULL: none */
};

static void hash_bytecode(struct subject *of)
{
	const struct opcode_library *library = of->opcodes_of;
	struct hash hash = of->text_hash;

	hash_word(&hash, of->session->library->name_hash.first);
	of->has_called = hash_opcodes(&hash, library, of->opcodes, of->number);
	for (uint32_t i = 0, size; of->has_called && !of->is_quick && i < of->number; i++)
		if (opcode_calls(library, opcode_at(library, of->opcodes, i))) {
			void *called =
				bytecode_copy_called(library, opcode_at(library, of->opcodes, i), &size);

			if (called)
				hash_opcodes(&hash, library, called, size);
			free(called);
		}
	of->bytecode = hash_end(hash);
}

/* False: nothing is known of it. `is_quick`: as in struct subject. */
static bool find_bytecode(struct subject *of, const struct session *session, const sqlite3_stmt *stmt,
                          const char *text, bool is_quick)
{
	*of = (struct subject){ .session = session,
		                .stmt = stmt,
		                .text = text,
		                .is_quick = is_quick,
		                .opcodes_of = opcode_library(session->library) };
	if (!text)
		return false;
	if (!has_plan(text))
		of->reason = PLAN_OF_NO_QUERY;
	else if (session->has_trace_callback)
		of->reason = PLAN_TRACED;
	else if (!of->opcodes_of)
		of->reason = PLAN_LAYOUT_UNKNOWN;
	else
		of->opcodes = opcode_bytecode(of->opcodes_of, stmt, &of->number);
	if (of->number > OPCODES_MAX) {
		of->reason = PLAN_TOO_LARGE;
		of->number = 0;
	}
	if (!of->reason && (!of->opcodes || !of->number))
		return false;
	of->layout = of->reason ? 0 : layout_of(of->opcodes_of, of->opcodes, of->number);
	of->text_hash = hash_bytes(text, strlen(text));
	hash_bytecode(of);
	of->key = key_of(of->bytecode);
	return true;
}

static bool has_calls(const struct module_record *answers)
{
	return answers && answers->calls.count;
}

static bool is_reported(const struct opcode_library *library, const void *opcodes, uint32_t count,
                        const char *text);

/* The run that has ended had these values. NULL also if its preparations would be reported once more, or if
 * the run did not end in a step: the host may have freed what it bound before it reset or finalized. */
static char *patterned_text(const struct subject *of)
{
	const struct session *session = of->session;

	if (!of->is_done || of->answers || is_reported(of->opcodes_of, of->opcodes, of->number, of->text))
		return NULL;
	return bound_values_patterns(host_api(session->library), session->db, (sqlite3_stmt *)of->stmt,
	                             of->text);
}

/* NULL: of->reason has the reason. */
static struct bytecode_due *make_due(struct subject *of)
{
	const struct session *session = of->session;
	bool needs_answers = false, needs_calls = false;
	struct bytecode_due *due;

	if (!of->reason)
		of->reason = virtual_tables_check(session, of->opcodes_of, of->opcodes, of->number,
		                                  &needs_answers, &needs_calls);
	/* Another thread may have replaced the methods during the preparation. */
	if (!of->reason && ((needs_answers && !of->answers) || (needs_calls && !has_calls(of->answers))))
		of->reason = is_reported(of->opcodes_of, of->opcodes, of->number, of->text)
		                     ? PLAN_FOREIGN_REPORTED
		                     : PLAN_FOREIGN_TABLE;
	due = of->reason ? NULL : malloc(sizeof(*due));
	if (!due) {
		of->reason = of->reason ? of->reason : PLAN_NOT_REACHED;
		return NULL;
	}
	*due = (struct bytecode_due){ .bytecode = of->bytecode.first,
		                      .layout = of->layout,
		                      .known = of->key,
		                      .library = session->library,
		                      .stmt = of->stmt,
		                      .db = session->db,
		                      .session = session->number,
		                      .answers = of->answers };
	if (of->answers)
		due->filters = virtual_filters_hash(of->opcodes_of, of->opcodes, of->number);
	if (bytecode_copy_read(&due->bytecodes, of->opcodes_of, of->opcodes, of->number, OPCODES_MAX) &&
	    (due->text = strdup(of->text))) {
		due->patterned = patterned_text(of);
		return due;
	}
	free_due(due);
	of->reason = PLAN_TOO_LARGE;
	return NULL;
}

static void refuse_subject(const struct subject *of)
{
	count(of->reason);
	refuse(of->bytecode.first, of->key, of->reason);
}

uint64_t bytecode_see(const struct session *session, const sqlite3_stmt *stmt, const char *text, bool is_done)
{
	struct calling *calling = calling_here();
	struct bytecode_due *due;
	struct subject of;

	if (!calling || !find_bytecode(&of, session, stmt, text, false))
		return 0;
	of.is_done = is_done;
	if (!note(of.key))
		return of.bytecode.first;
	due = make_due(&of);
	if (!due) {
		refuse_subject(&of);
		return of.bytecode.first;
	}
	if (calling->due) {
		refuse_due(calling->due, PLAN_NOT_REACHED);
		free_due(calling->due);
	}
	calling->due = due;
	announce(of.bytecode.first, of.key);
	return of.bytecode.first;
}

/* --- reading it ---------------------------------------------------------------------------------- */

/* Whether the bytecode ran on this connection. */
static bool is_open(const struct bytecode_due *due)
{
	const struct session *session = session_of(due->db);

	return session && session->number == due->session && !session_is_closing(session);
}

/* Whether the host may still read the connection's error, which the preparation would clear. A
 * preparation of its own clears it, too. */
static bool has_error(const struct bytecode_due *due, const void *subject)
{
	int code = host_api(due->library)->errcode(due->db);

	return subject != due->db && code != SQLITE_OK && code != SQLITE_DONE;
}

/* The callback of the host's that the preparation might call, BYTECODE_READ: none. */
static enum bytecode_counter callback_of(const struct opcode_library *library, const sqlite3 *db)
{
	if (callback_is_set(&library->callbacks.authorizer, db))
		return library->callbacks.authorizer.at ? PLAN_AUTHORIZER : PLAN_LAYOUT_UNKNOWN;
	if (callback_is_set(&library->callbacks.progress, db))
		return library->callbacks.progress.at ? PLAN_PROGRESS_HANDLER : PLAN_LAYOUT_UNKNOWN;
	return BYTECODE_READ;
}

/* Whether SQLite asked the modules what it had asked before, and got the answers with which the statement
 * runs. */
static bool is_answered(const struct bytecode_due *due, const struct opcode_library *library,
                        const struct module_replay *replay, const sqlite3_stmt *explained)
{
	struct hash filters;
	const void *opcodes;
	uint32_t count;

	if (!due->answers)
		return !replay->is_failed;
	opcodes = opcode_bytecode(library, explained, &count);
	filters = virtual_filters_hash(library, opcodes, count);
	return !replay->is_failed && filters.first == due->filters.first &&
	       filters.second == due->filters.second;
}

/* Explains the text, which is the statement's or has values in it. BYTECODE_READ: it has the bytecode that
 * the statement executes. */
static enum bytecode_counter explain(const struct bytecode_due *due, const struct opcode_library *library,
                                     const struct module_replay *replay, const char *text, struct plan *plan)
{
	const sqlite3_api_routines *api = host_api(due->library);
	char *sql = api->mprintf("EXPLAIN QUERY PLAN %s", text);
	sqlite3_stmt *explained = NULL;
	enum bytecode_counter reason = PLAN_REFUSED;

	/* It would be reported to the host's error log. */
	if (sql && strlen(sql) > (size_t)api->limit(due->db, SQLITE_LIMIT_SQL_LENGTH, -1))
		reason = PLAN_TOO_LONG;
	else if (sql && module_replay_prepare(api, due->db, sql, &explained) == SQLITE_OK && explained) {
		reason = plan_read(plan, library, explained) ? PLAN_DIFFERENT : PLAN_TOO_LARGE;
		if (reason == PLAN_DIFFERENT && !is_answered(due, library, replay, explained))
			reason = PLAN_FOREIGN_DIFFERENT;
		if (reason == PLAN_DIFFERENT &&
		    plan_match(plan, library, &due->bytecodes, text == due->patterned))
			reason = BYTECODE_READ;
	}
	api->finalize(explained);
	api->free(sql);
	return reason;
}

/* With `replay` in use. */
static void read_plan(const struct bytecode_due *due, const struct opcode_library *library,
                      const struct module_replay *replay)
{
	const sqlite3_api_routines *api = host_api(due->library);
	struct plan plan = { .nodes = { 0 } };
	enum bytecode_counter reason = explain(due, library, replay, due->text, &plan);

	if (reason == PLAN_DIFFERENT && due->patterned) {
		plan_free(&plan);
		plan = (struct plan){ .nodes = { 0 } };
		reason = explain(due, library, replay, due->patterned, &plan) == BYTECODE_READ
		                 ? BYTECODE_READ
		                 : PLAN_DIFFERENT;
	}
	if (!reason) {
		plan_columns_name(&plan, library, api, due->db, due->text);
		for (size_t i = 0; i < plan.called.count; i++)
			plan_columns_name(&plan.called.items[i], library, api, due->db, due->text);
		if (due->answers)
			virtual_modules_name(&plan, due->library);
		if (publish_bytecode(&(struct published_bytecode){ due->bytecode, due->layout, due->text,
		                                                   due->library->name },
		                     &plan))
			count(BYTECODE_READ);
		else
			forget(due->known);
	} else {
		refuse_due(due, reason);
	}
	plan_free(&plan);
	/* What the statement names may have gone since it ran. The host may read the error of its own call; a
	 * preparation would not clear this one where another connection has locked a shared schema. */
	if (has_error(due, NULL))
		api->exec(due->db, "", NULL, NULL, NULL);
}

/* The host does not notice now that its connection prepares a statement. `subject` as in has_error(). */
static void read_now(const struct bytecode_due *due, const struct opcode_library *library,
                     const void *subject)
{
	const sqlite3_api_routines *api = host_api(due->library);
	sqlite3_mutex *mutex = api->db_mutex(due->db);
	const struct module_record none = { .library = due->library };
	struct module_replay replay;
	enum bytecode_counter reason;
	struct call quiet;

	const int64_t memory = memory_sample_pause();
	call_enter_quiet(&quiet, due->library, __builtin_frame_address(0));
	api->mutex_enter(mutex);
	reason = callback_of(library, due->db); /* before the error, which the callback may have made */
	if (!reason && has_error(due, subject))
		reason = PLAN_ERROR_IN_USE;
	if (!reason && (!quiet.number || !module_methods_hold()))
		reason = PLAN_NOT_REACHED;
	if (reason) {
		refuse_due(due, reason);
	} else {
		/* Also without answers, because SQLite asks the module of a table that it leaves out of a
		 * join. */
		module_replay_begin(&replay, due->answers ? due->answers : &none, quiet.number);
		read_plan(due, library, &replay);
		module_replay_end();
		module_methods_release();
	}
	api->mutex_leave(mutex);
	call_leave(&quiet);
	memory_sample_resume(memory);
}

void bytecode_read_due(struct calling *calling, const void *subject, const void *frame)
{
	struct bytecode_due *due = calling->due;
	const struct opcode_library *library = opcode_library(due->library);
	const struct call_slot *around = calling_find(calling, frame);

	if ((subject != due->stmt && subject != due->db) || (around && (around->run || around->is_quiet)) ||
	    !library)
		return;
	calling->due = NULL;
	/* It may have been closed; then these are another statement and another connection. */
	if (!is_open(due) ||
	    (subject == due->stmt && host_api(due->library)->db_handle((sqlite3_stmt *)subject) != due->db))
		refuse_due(due, PLAN_CLOSED);
	else
		read_now(due, library, subject);
	free_due(due);
}

/* --- at a preparation ------------------------------------------------------------------------------- */

/* What reading plans at preparations may take in the whole process: one per cent of the time, and so much at
 * first. */
#define EARLY_SHARE 100
#define EARLY_ALLOWANCE_NS 5000000
/* The part before the reading takes some 10 us. A thread that loses its processor there spends nothing. */
#define EARLY_LOOK_MAX_NS 100000
/* Plans read there, and those of bytecode that differs only in literals. */
#define EARLY_MAX 4000
#define EARLY_MAX_ALIKE 4
#define EARLY_SHAPES 4096
/* Plans read there although that time is used up, because they can only be read there: with answers of
 * modules. */
#define EARLY_MODULES_MAX 100

static uint64_t early_began_ns, early_spent_ns; /* relaxed atomics, as the next */
static uint32_t early_modules;
static uint32_t early_count;              /* under the lock, as the next */
static uint8_t early_alike[EARLY_SHAPES]; /* by the layout's hash */

static bool is_affordable(uint64_t now, const struct module_record *answers)
{
	uint64_t began = __atomic_load_n(&early_began_ns, __ATOMIC_RELAXED),
		 spent = __atomic_load_n(&early_spent_ns, __ATOMIC_RELAXED);

	if (began)
		return spent <= EARLY_ALLOWANCE_NS + (now - began) / EARLY_SHARE ||
		       (has_calls(answers) &&
		        __atomic_load_n(&early_modules, __ATOMIC_RELAXED) < EARLY_MODULES_MAX);
	__atomic_store_n(&early_began_ns, now, __ATOMIC_RELAXED);
	return true;
}

/* Whether the text has this string in double quotes. A string with quotes in it counts as one. */
static bool is_double_quoted(const char *text, const char *string)
{
	const size_t size = string ? strlen(string) : 0;

	if (!string || strchr(string, '"'))
		return true;
	for (const char *at = strchr(text, '"'); at; at = strchr(at + 1, '"'))
		if (!strncmp(at + 1, string, size) && at[1 + size] == '"')
			return true;
	return false;
}

/* Whether SQLite reports something to the host's error log when it prepares the bytecode: an automatic index,
 * or a string in double quotes. It would be there twice. */
static bool is_reported(const struct opcode_library *library, const void *opcodes, uint32_t count,
                        const char *text)
{
	bool is = false;

	for (uint32_t i = 0, size; !is && i < count; i++) {
		const struct opcode_bytes *opcode = opcode_at(library, opcodes, i);
		const char *name = library->names[opcode->opcode];

		if (text && opcode_calls(library, opcode)) {
			void *called = bytecode_copy_called(library, opcode, &size);

			is = !called || is_reported(library, called, size, NULL);
			free(called);
		} else {
			is = !strcmp(name, "OpenAutoindex") ||
			     (text && !strncmp(name, "String", 6) && strchr(text, '"') &&
			      is_double_quoted(text, opcode->p4));
		}
	}
	return is;
}

/* The newest keys of which is_early() has decided: nearly all statements are known, without a lock. */
#define DECIDED 4096u
static uint64_t decided[DECIDED]; /* relaxed atomics */

static bool is_decided(struct hash key)
{
	return __atomic_load_n(&decided[key.first % DECIDED], __ATOMIC_RELAXED) == key.second;
}

/* Returns true if it was never met and may be read now; it is noted then. Its opcodes are looked at last. The
 * answer for a key is the same from then on. With answers of modules this is the only moment: later the host
 * may have registered other modules. */
static bool is_early(const struct subject *of)
{
	const bool is_only_here = has_calls(of->answers);
	uint8_t *alike;
	bool is_new;

	lock_acquire(&lock);
	is_new = (is_only_here || !hash_table_find(&known, of->key)) && early_count < EARLY_MAX;
	lock_release(&lock);
	if (!is_new)
		return false;
	alike = &early_alike[(of->layout >> 32) % EARLY_SHAPES];
	lock_acquire(&lock);
	is_new = is_only_here || *alike < EARLY_MAX_ALIKE;
	lock_release(&lock);
	if (!is_new || is_reported(of->opcodes_of, of->opcodes, of->number, of->text) || !note(of->key))
		return false;
	lock_acquire(&lock);
	early_count++;
	*alike += *alike < EARLY_MAX_ALIKE;
	lock_release(&lock);
	return true;
}

/* Returns what it took, in CPU time: a thread that waits for a processor spends nothing. */
static uint64_t read_early(struct subject *of)
{
	const uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const bool is_held = of->answers && module_methods_hold();
	struct bytecode_due *due;

	if (has_calls(of->answers))
		__atomic_fetch_add(&early_modules, 1, __ATOMIC_RELAXED);
	of->answers = is_held ? of->answers : NULL;
	due = make_due(of);

	if (due)
		read_now(due, of->opcodes_of, NULL);
	else
		refuse_subject(of);
	if (due)
		free_due(due);
	if (is_held)
		module_methods_release();
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

void bytecode_prepared(const struct session *session, const sqlite3_stmt *stmt, struct run_start *start,
                       struct fast_clock *clock, struct statement_name *name,
                       const struct module_record *answers)
{
	const uint64_t began = clock->newest;
	const bool is_paid = is_affordable(began, answers);
	struct subject of;
	uint64_t spent;
	bool is_new;

	if (!find_bytecode(&of, session, stmt, name->text, !is_paid))
		return;
	of.answers = answers;
	name->text_hash = of.text_hash;
	name->layout = of.layout;
	if (of.reason || (of.has_called && !is_paid))
		return;
	start->bytecode = of.bytecode.first;
	start->opcodes = of.opcodes;
	if (!is_paid || (is_decided(of.key) && !of.has_called))
		return;
	is_new = is_early(&of);
	spent = fast_clock_ns(clock) - began;
	if (spent > EARLY_LOOK_MAX_NS)
		spent = EARLY_LOOK_MAX_NS;
	if (is_new)
		spent += read_early(&of);
	/* With answers of modules, only another preparation gives another chance. */
	if (!is_forgotten(of.key))
		__atomic_store_n(&decided[of.key.first % DECIDED], of.key.second, __ATOMIC_RELAXED);
	__atomic_fetch_add(&early_spent_ns, spent, __ATOMIC_RELAXED);
}
