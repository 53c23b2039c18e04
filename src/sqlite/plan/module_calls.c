/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/module_calls.h"

#include <stdlib.h>
#include <string.h>

#include "handler/unwind/stack_copy.h"

/* SQLite asks for each set of usable constraints, so a join of many tables has many calls. */
#define CALLS_PER_STATEMENT 1000

/* sqlite3_vtab_in() and sqlite3_vtab_distinct() */
#define IN_SINCE 3038000
#define IN_MAX 32

/* Of a text that the module keeps. */
#define INDEX_TEXT_MAX 2000

typedef struct sqlite3_index_constraint constraint;
typedef struct sqlite3_index_orderby order;
typedef struct sqlite3_index_constraint_usage usage;

struct module_call {
	int module;
	bool is_function; /* a call of xFindFunction */

	/* The question. */
	int constraint_count, order_count;
	constraint *constraints;
	order *orders;
	uint64_t columns;
	int distinct;
	uint32_t in; /* constraints that may be given as a list */
	char *name;  /* of the function */
	int argc;

	/* The answer. */
	int rc;
	usage *usages;
	uint32_t taken; /* of `in`, those that the module takes as a list */
	int number, is_ordered, flags;
	double cost;
	sqlite3_int64 rows;
	char *text; /* NULL: none */
	module_function *function;
	void *context;
};

/* Not in struct calling: another thread may get that, if this one ends inside a call. */
static __thread struct module_record *recording __attribute__((tls_model("initial-exec")));
static __thread struct module_replay *replaying __attribute__((tls_model("initial-exec")));
static __thread uint64_t replaying_call __attribute__((tls_model("initial-exec"))); /* 0: none */

/* --- records --------------------------------------------------------------------------------- */

static void clear(struct module_record *record)
{
	for (size_t i = 0; i < record->calls.count; i++) {
		struct module_call *call = &record->calls.items[i];

		free(call->constraints);
		free(call->orders);
		free(call->usages);
		free(call->name);
		free(call->text);
	}
	record->calls.count = 0;
	record->is_lost = false;
}

void module_record_begin(struct calling *calling, const struct host_library *library)
{
	struct module_record *record = calling->modules;

	if (!record)
		record = calling->modules = calloc(1, sizeof(*record));
	recording = record;
	if (!record)
		return;
	if (record->calls.count || record->is_lost)
		clear(record);
	record->library = library;
	record->calling = calling;
	record->number++;
}

const struct module_record *module_record_end(struct calling *calling)
{
	const struct module_record *record = recording;

	recording = NULL;
	return record && record->calling == calling && !record->is_lost ? record : NULL;
}

/* A copy of the bytes in `*to`. False: out of memory. */
static bool copy_bytes(void *to, const void *from, size_t size)
{
	void *copy = from && size ? malloc(size) : NULL;

	if (copy)
		memcpy(copy, from, size);
	memcpy(to, &copy, sizeof(copy));
	return copy || !from || !size;
}

static bool copy_text(char **to, const char *from)
{
	return copy_bytes(to, from, from ? strlen(from) + 1 : 0);
}

/* --- questions and answers -------------------------------------------------------------------- */

static bool has_lists(const sqlite3_api_routines *api)
{
	return api->libversion_number() >= IN_SINCE && api->vtab_in && api->vtab_distinct;
}

/* The part of the question that only functions of SQLite tell. */
static void read_lists(const sqlite3_api_routines *api, sqlite3_index_info *info, int *distinct, uint32_t *in)
{
	*distinct = 0;
	*in = 0;
	if (!has_lists(api))
		return;
	*distinct = api->vtab_distinct(info);
	for (int i = 0; i < info->nConstraint && i < IN_MAX; i++)
		if (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && api->vtab_in(info, i, -1))
			*in |= 1u << i;
}

/* What follows the public part since that version; the module's calls of sqlite3_vtab_in() change `taken`,
 * which no function tells. False: it is not as expected. */
static bool read_taken(const sqlite3_index_info *info, const struct module_call *call, uint32_t *taken)
{
	struct {
		const void *clause, *parse;
		int distinct;
		uint32_t in, taken;
	} hidden;

	*taken = 0;
	if (!call->in)
		return true;
	memcpy(&hidden, info + 1, sizeof(hidden));
	*taken = hidden.taken;
	return hidden.distinct == call->distinct && (hidden.in & call->in) == call->in &&
	       !(hidden.taken & ~hidden.in);
}

static bool record_question(struct module_record *record, int module, sqlite3_index_info *info)
{
	const size_t constraints = info->nConstraint > 0 ? (size_t)info->nConstraint : 0;
	const size_t orders = info->nOrderBy > 0 ? (size_t)info->nOrderBy : 0;
	struct module_call *call =
		record->calls.count < CALLS_PER_STATEMENT ? vector_add(&record->calls) : NULL;

	if (!call)
		return false;
	call->module = module;
	call->columns = info->colUsed;
	call->constraint_count = (int)constraints;
	call->order_count = (int)orders;
	read_lists(host_api(record->library), info, &call->distinct, &call->in);
	return copy_bytes(&call->constraints, info->aConstraint, constraints * sizeof(constraint)) &&
	       copy_bytes(&call->orders, info->aOrderBy, orders * sizeof(order));
}

/* SQLite does not read idxStr, so it need not be a text, nor a pointer. Without an end it is lost. */
static bool copy_index_text(char **to, const sqlite3_index_info *info, const sqlite3_api_routines *api)
{
	char text[INDEX_TEXT_MAX];
	const char *end;
	size_t size = 0;

	if (!info->idxStr)
		return true;
	if (info->needToFreeIdxStr) {
		end = memchr(info->idxStr, '\0', api->msize(info->idxStr));
		return end && copy_bytes(to, info->idxStr, (size_t)(end - info->idxStr) + 1);
	}
	return stack_copy_text(info->idxStr, text, sizeof(text), &size) && size < sizeof(text) &&
	       copy_bytes(to, text, size + 1);
}

static bool record_answer(struct module_call *call, const sqlite3_index_info *info, int rc,
                          const sqlite3_api_routines *api)
{
	call->rc = rc;
	call->number = info->idxNum;
	call->is_ordered = info->orderByConsumed;
	call->cost = info->estimatedCost;
	call->rows = info->estimatedRows;
	call->flags = info->idxFlags;
	if (rc != SQLITE_OK) /* SQLite uses the rest of no other answer */
		return true;
	return read_taken(info, call, &call->taken) && copy_index_text(&call->text, info, api) &&
	       copy_bytes(&call->usages, info->aConstraintUsage,
	                  (size_t)call->constraint_count * sizeof(usage));
}

static bool is_asked(const struct module_call *call, int module, sqlite3_index_info *info,
                     const sqlite3_api_routines *api)
{
	uint32_t in;
	int distinct;

	if (call->is_function || call->module != module || call->constraint_count != info->nConstraint ||
	    call->order_count != info->nOrderBy || call->columns != info->colUsed)
		return false;
	for (int i = 0; i < info->nConstraint; i++) {
		const constraint *now = &info->aConstraint[i], *then = &call->constraints[i];

		if (now->iColumn != then->iColumn || now->op != then->op || now->usable != then->usable)
			return false;
	}
	for (int i = 0; i < info->nOrderBy; i++)
		if (info->aOrderBy[i].iColumn != call->orders[i].iColumn ||
		    info->aOrderBy[i].desc != call->orders[i].desc)
			return false;
	read_lists(api, info, &distinct, &in);
	return distinct == call->distinct && in == call->in;
}

static int answer(struct module_replay *replay, const struct module_call *call, sqlite3_index_info *info,
                  const sqlite3_api_routines *api)
{
	if (call->rc != SQLITE_OK)
		return call->rc;
	if (call->text && !(info->idxStr = api->mprintf("%s", call->text))) {
		replay->is_failed = true;
		return SQLITE_OK;
	}
	info->needToFreeIdxStr = call->text != NULL;
	if (call->constraint_count)
		memcpy(info->aConstraintUsage, call->usages, (size_t)call->constraint_count * sizeof(usage));
	info->idxNum = call->number;
	info->orderByConsumed = call->is_ordered;
	info->estimatedCost = call->cost;
	info->estimatedRows = call->rows;
	info->idxFlags = call->flags;
	for (int i = 0; i < IN_MAX; i++)
		if (call->taken >> i & 1)
			api->vtab_in(info, i, 1);
	return SQLITE_OK;
}

/* --- replay ----------------------------------------------------------------------------------- */

void module_replay_begin(struct module_replay *replay, const struct module_record *record, uint64_t call)
{
	*replay = (struct module_replay){ .record = record, .call = call };
	replaying = replay;
	replaying_call = call;
}

void module_replay_end(void)
{
	replaying = NULL;
	replaying_call = 0;
}

void module_replay_enter(const struct call *call, const char *text)
{
	if (replaying_call && call->outer_number == replaying_call && text == replaying->text)
		replaying_call = call->number;
}

int module_replay_prepare(const sqlite3_api_routines *api, sqlite3 *db, const char *text, sqlite3_stmt **stmt)
{
	struct module_replay *replay = replaying;
	int rc;

	if (replay)
		replay->text = text;
	rc = api->prepare_v2(db, text, -1, stmt, NULL);
	if (replay)
		replaying_call = replay->call;
	return rc;
}

/* Not in a preparation of the host's code that runs meanwhile, which is in a call of its own; nor if that
 * code has left the replay's call by longjmp(). */
static bool is_replayed(const void *frame)
{
	const struct call_slot *innermost = calling_current ? calling_find(calling_current, frame) : NULL;

	return innermost && call_slot_number(innermost) == replaying_call;
}

/* SQLite asks fewer questions than before if it knows the columns of a view already, so recorded ones may be
 * left out. Without an answer the table has no index, which is no error: that would be logged. */
static int replay_best_index(struct module_replay *replay, int module, sqlite3_index_info *info)
{
	const sqlite3_api_routines *api = host_api(replay->record->library);

	for (size_t i = replay->at; i < replay->record->calls.count; i++)
		if (is_asked(&replay->record->calls.items[i], module, info, api)) {
			replay->at = i + 1;
			return answer(replay, &replay->record->calls.items[i], info, api);
		}
	replay->is_failed = true;
	return SQLITE_OK;
}

static int replay_find_function(struct module_replay *replay, int module, int argc, const char *name,
                                module_function **function, void **context)
{
	for (size_t i = replay->at; i < replay->record->calls.count; i++) {
		const struct module_call *call = &replay->record->calls.items[i];

		if (!call->is_function || call->module != module || call->argc != argc ||
		    strcmp(call->name, name) != 0)
			continue;
		replay->at = i + 1;
		*function = call->function;
		*context = call->context;
		return call->rc;
	}
	replay->is_failed = true;
	return 0;
}

/* --- methods ---------------------------------------------------------------------------------- */

/* The host's code has returned to this recording, which it may have left, on this thread or on another. */
static bool resume(struct module_record *record, uint64_t number)
{
	if (calling_current != record->calling || record->number != number)
		return false;
	recording = record;
	return true;
}

/* A recording that the host left by longjmp() may have become another thread's. */
static bool is_recorded(const struct module_record *record)
{
	return record && record->calling == calling_current;
}

int module_calls_best_index(int module, best_index_function *real, sqlite3_vtab *table,
                            sqlite3_index_info *info)
{
	struct module_record *record = recording;
	uint64_t number;
	bool is_fine;
	size_t at;
	int rc;

	if (__builtin_expect(replaying_call != 0, 0) && is_replayed(__builtin_frame_address(0)))
		return replay_best_index(replaying, module, info);
	if (!is_recorded(record))
		return real(table, info);
	is_fine = record_question(record, module, info);
	at = record->calls.count - 1;
	number = record->number;
	recording = NULL; /* what the module prepares itself is not a part of it */
	rc = real(table, info);
	if (resume(record, number))
		record->is_lost |= !is_fine || !record_answer(&record->calls.items[at], info, rc,
		                                              host_api(record->library));
	return rc;
}

int module_calls_find_function(int module, find_function_function *real, sqlite3_vtab *table, int argc,
                               const char *name, module_function **function, void **context)
{
	struct module_record *record = recording;
	struct module_call *call;
	uint64_t number;
	int rc;

	if (__builtin_expect(replaying_call != 0, 0) && is_replayed(__builtin_frame_address(0)))
		return replay_find_function(replaying, module, argc, name, function, context);
	if (!is_recorded(record))
		return real(table, argc, name, function, context);
	number = record->number;
	recording = NULL;
	rc = real(table, argc, name, function, context);
	if (!resume(record, number))
		return rc;
	call = record->calls.count < CALLS_PER_STATEMENT ? vector_add(&record->calls) : NULL;
	if (call) {
		call->module = module;
		call->is_function = true;
		call->argc = argc;
		call->rc = rc;
		call->function = rc ? *function : NULL;
		call->context = rc ? *context : NULL;
	}
	record->is_lost |= !call || !copy_text(&call->name, name);
	return rc;
}
