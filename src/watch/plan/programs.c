/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/plan/programs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hash_table.h"
#include "base/lock.h"
#include "base/text.h"
#include "handler/ring.h"
#include "query/program_record.h"
#include "query/query_record.h"
#include "sampler/state.h"
#include "store/control.h"
#include "store/counters.h"
#include "watch/plan/plan.h"
#include "watch/plan/plan_columns.h"
#include "watch/plan/virtual_tables.h"

/* More than any program of use; what is hashed, copied and stored of one is bounded. */
#define OPCODES_MAX 100000u
#define KNOWN_MAX 65536
#define RING_SHARE 16

struct program_due {
	uint64_t program, layout;
	struct hash known; /* its key in the table */
	const struct host_library *library;
	const void *stmt;
	sqlite3 *db;
	uint32_t session; /* its number: another connection may come to be at this address */
	char *text;
	struct program_copy programs;
};

/* A program that was published, or is due: for the trace file that was open, when so many losses and removals
 * of programs were known. One that comes later may have been this one's. */
struct known {
	struct hash key;
	uint64_t lost;
	enum programs_counter reason; /* that was published, PROGRAMS_READ: none */
};

/* No number of losses. */
#define NOT_PUBLISHED UINT64_MAX

LOCK_DEFINE(lock, LOCK_PROGRAMS);
static struct hash_table known = HASH_TABLE_OF(struct known, KNOWN_MAX); /* under the lock */
static uint64_t counters[PROGRAMS_COUNTERS];

static const struct {
	const char *sentence;
	bool is_lasting;
} reasons[PROGRAMS_COUNTERS] = {
#define PLAN_REASON(name, metric, is_lasting, sentence) [name] = { sentence, is_lasting },
	PLANS_MISSING(PLAN_REASON)
#undef PLAN_REASON
};

static void count(enum programs_counter which)
{
	__atomic_add_fetch(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t programs_counter(enum programs_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

static struct hash key_of(struct hash program)
{
	program.first ^= control_epoch() * 0x9E3779B97F4A7C15ull;
	return program;
}

/* Whether it is to be published: for the first time for the trace file that is open, or again. */
static bool note(struct hash key)
{
	uint64_t lost = store_counter(STORE_PLANS_LOST) + store_counter(STORE_PLANS_REMOVED);
	struct known *entry;
	bool is_due;

	lock_take(&lock);
	entry = hash_table_find(&known, key);
	is_due = !entry || entry->lost != lost;
	if (!entry)
		entry = hash_table_add(&known, key);
	if (entry && is_due && entry->lost != NOT_PUBLISHED)
		entry->reason = PROGRAMS_READ; /* for another file, or it may have been lost */
	if (entry)
		entry->lost = lost;
	lock_release(&lock);
	return entry && is_due;
}

/* It was not published: its next run with samples tries again. */
static void forget(struct hash key)
{
	struct known *entry;

	lock_take(&lock);
	entry = hash_table_find(&known, key);
	if (entry)
		entry->lost = NOT_PUBLISHED;
	lock_release(&lock);
}

/* --- publishing --------------------------------------------------------------------------------- */

struct rows {
	uint64_t program;
	struct ring *ring;
	bool is_refused; /* the ring was full; a record that never fits is left out */
	size_t used;
	char text[PROGRAM_ROWS_BYTES];
};

static void *reserve(struct rows *rows, size_t size)
{
	void *record = ring_reserve(rows->ring, size);

	rows->is_refused |= !record && size <= ring_max_payload(rows->ring);
	return record;
}

static void send_rows(struct rows *rows)
{
	struct program_rows_record *record = rows->used ? reserve(rows, sizeof *record + rows->used) : NULL;

	if (record) {
		record->program = rows->program;
		record->size = (uint32_t)rows->used;
		memcpy(record->text, rows->text, rows->used);
		ring_commit(rows->ring, record, RECORD_PROGRAM_ROWS);
	}
	rows->used = 0;
}

static void add_row(struct rows *rows, const char *line, int size)
{
	if (size <= 0 || (size_t)size >= sizeof rows->text)
		return;
	if (rows->used + (size_t)size > sizeof rows->text)
		send_rows(rows);
	memcpy(rows->text + rows->used, line, (size_t)size);
	rows->used += (size_t)size;
}

/* The plan is missing for this reason. */
static void leave(uint64_t program, struct hash key, enum programs_counter reason)
{
	struct rows rows = { .program = program, .ring = sampler_ring() };
	struct known *entry;
	bool is_new;
	char line[160];

	lock_take(&lock);
	entry = hash_table_find(&known, key);
	is_new = entry && entry->reason != reason;
	if (entry)
		entry->reason = reason;
	lock_release(&lock);
	if (is_new && rows.ring) {
		add_row(&rows, line, snprintf(line, sizeof line, "M\t%s\n", reasons[reason].sentence));
		send_rows(&rows);
	}
	if (rows.is_refused || !reasons[reason].is_lasting)
		forget(key);
}

/* Until the plan comes, which it may never. */
static void announce(uint64_t program, struct hash key)
{
	leave(program, key, PLAN_NOT_REACHED);
	note(key);
}

static void leave_due(const struct program_due *due, enum programs_counter reason)
{
	count(reason);
	leave(due->program, due->known, reason);
}

/* --- at the end of a run ----------------------------------------------------------------------- */

/* Without P1: some opcodes count there. */
static void hash_opcodes(struct hash *hash, const struct opcode_library *library, const void *opcodes,
                         uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct opcode_bytes *opcode = opcode_at(library, opcodes, i);

		hash_word(hash, (uint64_t)(uint32_t)opcode->p2 << 32 | (uint32_t)opcode->p3);
	}
}

static struct hash hash_program(const struct opcode_library *library, const void *opcodes, uint32_t count,
                                const char *text, const char *name)
{
	struct hash hash = hash_bytes(text, strlen(text)), of = hash_bytes(name, strlen(name));

	hash_word(&hash, of.first);
	hash_opcodes(&hash, library, opcodes, count);
	for (uint32_t i = 0, size; i < count; i++)
		if (opcode_calls(library, opcode_at(library, opcodes, i))) {
			void *called = program_copy_called(library, opcode_at(library, opcodes, i), &size);

			if (called)
				hash_opcodes(&hash, library, called, size);
			free(called);
		}
	return hash_end(hash);
}

/* Another statement is not prepared again: what it made exists by now, which SQLite reports to the host's
 * error log, and some PRAGMAs act when they are prepared. */
static bool has_plan(const char *text)
{
	static const char *const words[] = { "select",  "with",   "values", "insert",
		                             "replace", "update", "delete" };

	text = text_skip_comments(text);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strncasecmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

/* P2 alone: roots of tables and indexes, and where each opcode goes on. P3 of the first is the schema's
 * cookie. */
#define LAYOUT_OPCODES 4096u

uint64_t programs_layout(const struct host_library *of, const void *stmt, const char *text)
{
	const struct opcode_library *library = opcode_library(of);
	uint64_t layout = 0;
	const void *opcodes;
	uint32_t number;

	if (!library || !text || !has_plan(text))
		return 0;
	opcodes = opcode_program(library, stmt, &number);
	if (!opcodes || number > OPCODES_MAX)
		return 0;
	for (uint32_t i = 0; i < number && i < LAYOUT_OPCODES; i++)
		layout = (layout ^ (uint32_t)opcode_at(library, opcodes, i)->p2) * 0x9E3779B97F4A7C15ull;
	layout ^= layout >> 32;
	return (layout ^ number) * 0x9E3779B97F4A7C15ull;
}

static void free_due(struct calling *calling)
{
	program_copy_free(&calling->due->programs);
	free(calling->due->text);
	free(calling->due);
	calling->due = NULL;
}

/* PROGRAMS_READ: it will be read. */
static enum programs_counter set_due(const struct run *run, const struct opcode_library *library,
                                     const void *opcodes, uint32_t count_, const char *text, uint64_t program,
                                     struct hash key)
{
	struct calling *calling = calling_here();
	struct program_due *due = calling ? malloc(sizeof *due) : NULL;

	if (!due)
		return PLAN_NOT_REACHED;
	*due = (struct program_due){ .program = program,
		                     .layout = programs_layout(run->session->library, run->stmt, text),
		                     .known = key,
		                     .library = run->session->library,
		                     .stmt = run->stmt,
		                     .db = run->session->db,
		                     .session = run->session->number };
	if (!program_copy_read(&due->programs, library, opcodes, count_, OPCODES_MAX)) {
		program_copy_free(&due->programs);
		free(due);
		return PLAN_TOO_LARGE;
	}
	due->text = strdup(text);
	if (calling->due) {
		leave_due(calling->due, PLAN_NOT_REACHED);
		free_due(calling);
	}
	calling->due = due;
	return PROGRAMS_READ;
}

uint64_t programs_see(const struct run *run, const char *text)
{
	const struct host_library *of = run->session->library;
	const struct opcode_library *library = opcode_library(of);
	enum programs_counter reason = PROGRAMS_READ;
	const void *opcodes = NULL;
	struct hash program, key;
	uint32_t number = 0;

	if (!text)
		return 0;
	if (!has_plan(text))
		reason = PLAN_OF_NO_QUERY;
	else if (!library)
		reason = PLAN_LAYOUT_UNKNOWN;
	else
		opcodes = opcode_program(library, run->stmt, &number);
	if (number > OPCODES_MAX) {
		reason = PLAN_TOO_LARGE;
		number = 0;
	}
	if (!reason && (!opcodes || !number))
		return 0;
	program = hash_program(library, opcodes, number, text, of->name);
	key = key_of(program);
	if (!note(key))
		return program.first;
	if (!reason)
		reason = virtual_tables_check(of, library, run->session->db, opcodes, number);
	if (!reason)
		reason = set_due(run, library, opcodes, number, text, program.first, key);
	if (reason) {
		count(reason);
		leave(program.first, key, reason);
	} else {
		announce(program.first, key);
	}
	return program.first;
}

/* --- the plan ----------------------------------------------------------------------------------- */

static int depth_of(const struct plan *plan, const struct plan_node *node)
{
	int depth = 0;

	for (size_t i = 0; i < plan->nodes.count && node->parent && depth < 50; i++)
		if (plan->nodes.items[i].id == node->parent && &plan->nodes.items[i] != node) {
			node = &plan->nodes.items[i];
			depth++;
			i = (size_t)-1;
		}
	return depth;
}

static void write_nodes(const struct plan *plan, FILE *to, int depth)
{
	for (size_t i = 0; i < plan->nodes.count; i++) {
		const struct plan_node *node = &plan->nodes.items[i];

		if (!node->is_made)
			fprintf(to, "%*s%s\n", 2 * (depth + depth_of(plan, node)), "", node->detail);
	}
	for (size_t i = 0; i < plan->called.count; i++)
		write_nodes(&plan->called.items[i], to, depth + (plan->root != 0));
}

/* The plan as text, a line a node; what is modified is none of it. */
static char *write_plan(const struct plan *plan, size_t *size)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, size);

	if (!to)
		return NULL;
	write_nodes(plan, to, 0);
	fclose(to);
	return text;
}

/* Without numbers that move: those of subqueries, which may be addresses. */
static uint64_t hash_plan(const char *text, size_t size)
{
	struct hash hash = hash_begin(0);

	for (size_t i = 0; i < size; i++) {
		bool moves = i > 0 && strchr("0123456789abcdefx", text[i]) &&
		             (text[i - 1] == '-' || !strncmp(text + (i < 9 ? 0 : i - 9), "SUBQUERY ", 9));

		while (moves && i < size && text[i] && strchr("0123456789abcdefx", text[i]))
			i++;
		if (i < size)
			hash_word(&hash, (unsigned char)text[i]);
	}
	return hash_end(hash).first;
}

static void send_program(const struct program_due *due, const struct plan *plan, struct rows *rows)
{
	size_t plan_size = 0, query_size = strlen(due->text), library_size = strlen(due->library->name);
	char *text = write_plan(plan, &plan_size);
	size_t room = ring_max_payload(rows->ring) / RING_SHARE;
	struct program_record *record;
	bool is_cut;

	room = room < PROGRAM_ROWS_BYTES ? PROGRAM_ROWS_BYTES : room;
	library_size = library_size < room / 4 ? library_size : room / 4;
	plan_size = text_cut(text ? text : "", plan_size < room / 2 ? plan_size : room / 2);
	is_cut = query_size > room / 4;
	query_size = is_cut ? text_cut(due->text, room / 4) : query_size;
	record = text ? reserve(rows, sizeof *record + query_size + library_size + plan_size) : NULL;
	if (record) {
		*record = (struct program_record){ .program = due->program,
			                           .plan = hash_plan(text, plan_size),
			                           .layout = due->layout,
			                           .seen_ns = clock_ns(CLOCK_REALTIME),
			                           .query_size = (uint32_t)query_size,
			                           .library_size = (uint32_t)library_size,
			                           .plan_size = (uint32_t)plan_size,
			                           .flags = is_cut ? QUERY_TEXT_CUT : 0 };
		memcpy(record->text, due->text, query_size);
		memcpy(record->text + query_size, due->library->name, library_size);
		memcpy(record->text + query_size + library_size, text, plan_size);
		ring_commit(rows->ring, record, RECORD_PROGRAM);
	}
	free(text);
}

static void add_nodes(struct rows *rows, const struct plan *plan)
{
	char line[1024];

	for (size_t i = 0; i < plan->nodes.count; i++) {
		const struct plan_node *node = &plan->nodes.items[i];

		add_row(rows, line,
		        snprintf(line, sizeof line, "N\t%d\t%d\t%s\t%s\n", node->id, node->parent,
		                 node->detail, node->compared));
	}
	for (size_t i = 0; i < plan->called.count; i++)
		add_nodes(rows, &plan->called.items[i]);
}

/* `caller`: the opcode of the statement that calls the program, NULL: it is the statement's own. Their
 * addresses are as in a sample (handler/opcode.h). */
static void add_opcodes(struct rows *rows, const struct plan *plan, const struct plan_opcode *caller)
{
	char line[1024];

	for (size_t i = 0; i < plan->opcodes.count; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];
		const uint64_t address =
			caller ? caller->address | (opcode->address + 1ull) << 32 : opcode->address;

		add_row(rows, line,
		        snprintf(line, sizeof line, "O\t%" PRIu64 "\t%d\t%s\t%d\t%d\t%d\t%u\n", address,
		                 opcode->node, opcode->name, opcode->bytes.p1, opcode->bytes.p2,
		                 opcode->bytes.p3, opcode->bytes.p5));
		if (opcode->calls && !caller)
			add_opcodes(rows, &plan->called.items[opcode->calls - 1], opcode);
	}
}

static void publish(const struct program_due *due, const struct plan *plan)
{
	struct rows rows = { .program = due->program, .ring = sampler_ring() };

	if (!rows.ring)
		return;
	send_program(due, plan, &rows);
	add_nodes(&rows, plan);
	add_opcodes(&rows, plan, NULL);
	send_rows(&rows);
	if (rows.is_refused)
		forget(due->known);
	else
		count(PROGRAMS_READ);
}

/* --- reading it ---------------------------------------------------------------------------------- */

/* Whether the connection is the one that the program ran on. */
static bool is_open(const struct program_due *due)
{
	const struct session *session = session_of(due->db);

	return session && session->number == due->session && !session_is_closing(session);
}

/* Whether the host may still read the connection's error, which the preparation would clear. A
 * preparation of its own clears it, too. */
static bool has_error(const struct program_due *due, const void *subject)
{
	int code = host_api(due->library)->errcode(due->db);

	return subject != due->db && code != SQLITE_OK && code != SQLITE_DONE;
}

/* The callback of the host's that the preparation might call, PROGRAMS_READ: none. */
static enum programs_counter callback_of(const struct opcode_library *library, const sqlite3 *db)
{
	if (callback_is_set(&library->callbacks.authorizer, db))
		return library->callbacks.authorizer.at ? PLAN_AUTHORIZER : PLAN_LAYOUT_UNKNOWN;
	if (callback_is_set(&library->callbacks.progress, db))
		return library->callbacks.progress.at ? PLAN_PROGRESS_HANDLER : PLAN_LAYOUT_UNKNOWN;
	return PROGRAMS_READ;
}

static void read_plan(const struct program_due *due, const struct opcode_library *library)
{
	const sqlite3_api_routines *api = host_api(due->library);
	char *text = api->mprintf("EXPLAIN QUERY PLAN %s", due->text);
	sqlite3_stmt *explained = NULL;
	struct plan plan = { .nodes = { 0 } };
	enum programs_counter reason = PLAN_REFUSED;

	/* A text that the host allows to be no longer would be reported to its error log. */
	if (text && strlen(text) <= (size_t)api->limit(due->db, SQLITE_LIMIT_SQL_LENGTH, -1) &&
	    api->prepare_v2(due->db, text, -1, &explained, NULL) == SQLITE_OK && explained) {
		reason = plan_read(&plan, library, explained) ? PLAN_DIFFERENT : PLAN_TOO_LARGE;
		if (reason == PLAN_DIFFERENT && plan_match(&plan, library, &due->programs)) {
			reason = PROGRAMS_READ;
			plan_columns_name(&plan, library, api, due->db, due->text);
			for (size_t i = 0; i < plan.called.count; i++)
				plan_columns_name(&plan.called.items[i], library, api, due->db, due->text);
			publish(due, &plan);
		}
	}
	if (reason)
		leave_due(due, reason);
	api->finalize(explained);
	api->free(text);
	plan_free(&plan);
	/* What the statement names may have gone since it ran. The host may read the error of its own call; a
	 * preparation would not clear this one where another connection has locked a shared schema. */
	if (has_error(due, NULL))
		api->exec(due->db, "", NULL, NULL, NULL);
}

void programs_read_due(struct calling *calling, const void *subject, const void *frame)
{
	struct program_due *due = calling->due;
	const struct opcode_library *library = opcode_library(due->library);
	const struct call_place *around = calling_find(calling, frame);
	const sqlite3_api_routines *api = host_api(due->library);
	enum programs_counter reason;
	sqlite3_mutex *mutex;
	struct call quiet;

	if ((subject != due->stmt && subject != due->db) || (around && (around->run || around->is_quiet)) ||
	    !library)
		return;
	/* It may have been closed; then these are another statement and another connection. */
	if (!is_open(due) || (subject == due->stmt && api->db_handle((sqlite3_stmt *)subject) != due->db)) {
		leave_due(due, PLAN_CLOSED);
		free_due(calling);
		return;
	}
	call_enter_quiet(&quiet, due->library, __builtin_frame_address(0));
	mutex = api->db_mutex(due->db);
	api->mutex_enter(mutex);
	reason = has_error(due, subject) ? PLAN_ERROR_IN_USE : callback_of(library, due->db);
	if (reason)
		leave_due(due, reason);
	else if (due->text)
		read_plan(due, library);
	api->mutex_leave(mutex);
	call_leave(&quiet);
	free_due(calling);
}
