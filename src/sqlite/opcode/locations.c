/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/locations.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debug.h"
#include "handler/unwind/full.h"
#include "handler/unwind/rules.h"
#include "handler/unwind/slow_walk.h"
#include "handler/unwind/stack_copy.h"
#include "handler/unwind/unwind.h"
#include "modules/publish.h"
#include "sqlite/opcode/flow.h"
#include "sqlite/opcode/names.h"
#include "sqlite/opcode/trials.h"
#include "sqlite/library/auto_extensions.h"
#include "sqlite/library/calling.h"
#include "timers/memory_sample.h"
#include "timers/registers.h"

#define WORD sizeof(uintptr_t)
#define STRUCT_BYTES 0x200 /* of SQLite's structures, as far as they are read */
#define BYTECODE_MAX 200
#define SLOTS 128 /* of the frame */
#define NEAR 12   /* frames between the interpreter and inspect_here() */
#define OP_BYTES_MAX (8 * WORD)

/* By DWARF number: those that a call preserves. */
#if defined(__x86_64__)
static const int kept_registers[] = { 3, CFI_FRAME_POINTER, 12, 13, 14, 15 };
#elif defined(__aarch64__)
static const int kept_registers[] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, CFI_FRAME_POINTER };
#endif
#define REGISTERS (int)(sizeof(kept_registers) / sizeof(*kept_registers))
#define CANDIDATES (REGISTERS + SLOTS)
#define TRIAL_CALLS 256
#define SAME_NODES_SINCE 3042000 /* the version */

struct learning {
	const sqlite3_api_routines *api;
	sqlite3 *db;
	const struct thread *thread;
	struct opcode_library *found;
	/* The statement being tried. */
	enum trial_kind kind;
	const void *statement;
	uintptr_t bytecode; /* its opcodes */
	uint32_t count;
	uint32_t caller;             /* the opcode that calls queryprof's function */
	bool inspects, has_searched; /* in its calls of that */
	bool failed;
	/* Which words of the structures are each of these, until now. */
	struct {
		bool frame[STRUCT_BYTES / WORD], parent[STRUCT_BYTES / WORD], bytecode[STRUCT_BYTES / WORD];
		bool count[STRUCT_BYTES / 4], pc[STRUCT_BYTES / 4], counter[STRUCT_BYTES / 4];
	} is;
	bool is_held[TRIAL_CALLS]
		    [CANDIDATES];           /* whether each location had the opcode's address in each call */
	uintptr_t called_from[TRIAL_CALLS]; /* in the interpreter */
	struct {
		const char *name; /* the library's own */
		struct opcode_bytes bytes;
	} rows[BYTECODE_MAX];
	unsigned char copy[BYTECODE_MAX * OP_BYTES_MAX]; /* of the bytecode */
	const char *names[256];                          /* of the opcodes found, as in `rows` */
};

static struct opcode_library libraries[HOST_LIBRARIES_MAX];
static bool tried[HOST_LIBRARIES_MAX]; /* atomic */
static pid_t learner;                  /* atomic: thread id */

bool opcode_library_learning(void)
{
	pid_t thread = __atomic_load_n(&learner, __ATOMIC_RELAXED);

	return thread != 0 && thread == gettid();
}

/* --- reading ------------------------------------------------------------------------------- */

/* How much of a structure can be read. */
static size_t read_struct(const void *from, void *to)
{
	size_t size = STRUCT_BYTES;

	while (size && !stack_copy_part((uintptr_t)from, to, size))
		size -= 64;
	return size;
}

/* --- what EXPLAIN says ------------------------------------------------------------------------ */

static sqlite3_stmt *prepare(const struct learning *learning, const char *before, const char *sql)
{
	char *text = learning->api->mprintf("%s%s", before, sql);
	sqlite3_stmt *stmt = NULL;

	if (text)
		learning->api->prepare_v2(learning->db, text, -1, &stmt, NULL);
	learning->api->free(text);
	return stmt;
}

static uint32_t explain(struct learning *learning, const char *sql)
{
	const sqlite3_api_routines *api = learning->api;
	sqlite3_stmt *stmt = prepare(learning, "EXPLAIN ", sql);
	uint32_t count = 0;
	bool is_main = true;

	while (stmt && api->step(stmt) == SQLITE_ROW) {
		const char *name = (const char *)api->column_text(stmt, 1);

		/* Those of its triggers follow, numbered from 0. */
		is_main = is_main && (uint32_t)api->column_int(stmt, 0) == count;
		if (!is_main || count == BYTECODE_MAX || !name)
			continue;
		learning->rows[count].name = name;
		learning->rows[count].bytes.p1 = api->column_int(stmt, 2);
		learning->rows[count].bytes.p2 = api->column_int(stmt, 3);
		learning->rows[count].bytes.p3 = api->column_int(stmt, 4);
		count++;
	}
	api->finalize(stmt);
	return count;
}

static bool is_row(const struct learning *learning, uint32_t number, const void *opcode)
{
	const struct opcode_bytes *row = &learning->rows[number].bytes;
	struct opcode_bytes bytes;

	memcpy(&bytes, opcode, sizeof(bytes));
	return bytes.p1 == row->p1 && bytes.p2 == row->p2 && bytes.p3 == row->p3;
}

/* Whether the bytecode exists. Then it is in `copy`. */
static bool copy_bytecode(struct learning *learning, uintptr_t at, uint32_t op_bytes, uint32_t count)
{
	if (!count || !stack_copy_part(at, learning->copy, count * op_bytes))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!is_row(learning, i, &learning->copy[i * op_bytes]))
			return false;
	return true;
}

static void set_op_bytes(struct opcode_locations *locations, uint32_t bytes)
{
	locations->op_bytes = bytes;
	locations->op_shift = (uint32_t)__builtin_ctz(bytes);
	locations->op_inverse = bytes >> locations->op_shift;
	/* Each step doubles the bits that are right, three at first. */
	for (int i = 0; i < 5; i++)
		locations->op_inverse *= 2 - (bytes >> locations->op_shift) * locations->op_inverse;
}

static void find_bytecode(struct learning *learning, const void *const *words, size_t size, uint32_t count)
{
	struct opcode_locations *locations = &learning->found->locations;
	struct opcode_bytes first;

	for (uint32_t i = 0; i < size / WORD; i++) {
		uintptr_t at = (uintptr_t)words[i];

		if (at <= STACK_COPY_BYTES || at % WORD || !stack_copy_part(at, &first, sizeof(first)) ||
		    !is_row(learning, 0, &first))
			continue;
		for (uint32_t bytes = sizeof(first); bytes <= OP_BYTES_MAX; bytes += WORD)
			if (copy_bytecode(learning, at, bytes, count)) {
				locations->a_op = i * WORD;
				set_op_bytes(locations, bytes);
				return;
			}
	}
	learning->failed = true;
}

/* Before its first step: opcodes change as they run. */
static bool inspect_statement(struct learning *learning, const sqlite3_stmt *stmt, uint32_t count)
{
	const struct opcode_locations *locations = &learning->found->locations;
	union {
		const void *words[STRUCT_BYTES / WORD];
		uint32_t numbers[STRUCT_BYTES / 4];
	} now = { { NULL } };
	size_t size = read_struct(stmt, &now);

	if (!locations->op_bytes)
		find_bytecode(learning, now.words, size, count);
	if (learning->failed || !copy_bytecode(learning, (uintptr_t)now.words[locations->a_op / WORD],
	                                       locations->op_bytes, count))
		return false;
	learning->statement = stmt;
	learning->bytecode = (uintptr_t)now.words[locations->a_op / WORD];
	learning->count = count;
	for (uint32_t i = 0; i < STRUCT_BYTES / 4; i++)
		learning->is.count[i] &= i < size / 4 && now.numbers[i] == count;
	for (uint32_t i = 0; i < count; i++)
		learning->names[learning->copy[i * locations->op_bytes]] = learning->rows[i].name;
	return true;
}

static bool is_among(const char *name, const char *names)
{
	size_t size = strlen(name);

	for (const char *at = names; (at = strstr(at, name)); at += size)
		if ((at == names || at[-1] == ' ') && (at[size] == ' ' || !at[size]))
			return true;
	return false;
}

/* The one opcode of the bytecode that calls queryprof's function; 0: there are several. */
static uint32_t find_caller(const struct learning *learning, const char *names)
{
	uint32_t caller = 0, calls = 0;

	for (uint32_t i = 1; i < learning->count; i++)
		if (is_among(learning->rows[i].name, names)) {
			caller = i;
			calls++;
		}
	return calls == 1 ? caller : 0;
}

/* --- what the interpreter's frame has -------------------------------------------------------- */

static bool find_function(const struct code_map *map, uintptr_t pc, struct opcode_locations *locations)
{
	struct cfi_section section;
	struct cfi_row row;

	if (rules_find_section(map, pc, &section) > SECTION_NEWER || !section.header ||
	    cfi_find_row(&section, pc, &row) != CFI_FOUND)
		return false;
	locations->start = row.function_start;
	locations->end = row.function_end;
	return true;
}

static void compare_location(struct learning *learning, int number, uintptr_t value)
{
	const uintptr_t offset = (uintptr_t)learning->caller * learning->found->locations.op_bytes;

	learning->is_held[learning->found->calls][number] = value == learning->bytecode + offset;
}

/* `registers`: of the interpreter's frame. */
static void compare_locations(struct learning *learning, const uint64_t *registers, uintptr_t cfa)
{
	uintptr_t value;

	for (int i = 0; i < REGISTERS; i++)
		compare_location(learning, i, registers[kept_registers[i]]);
	for (int i = 0; i < SLOTS && (i + 1) * WORD <= cfa - registers[CFI_STACK_POINTER]; i++) {
		memcpy(&value, (const void *)(cfa - (i + 1) * WORD), sizeof(value));
		compare_location(learning, REGISTERS + i, value);
	}
}

/* From queryprof's function to the interpreter. The first function of all is called by it directly. */
static void walk(struct learning *learning, const struct code_map *map, const ucontext_t *context)
{
	struct opcode_locations *locations = &learning->found->locations;
	struct full_frame frame;

	full_begin(&frame, context);
	const struct unwind_bounds bounds =
		walk_bounds(&learning->thread->stack, frame.registers[CFI_STACK_POINTER]);
	for (uint32_t i = 0; i < NEAR; i++) {
		const struct full_frame callee = frame;
		/* Frame 0 is inspect_here(), 1 the callback, 2 its caller. */
		if (i == 2 && !locations->end && !find_function(map, callee.pc, locations))
			return;
		bool is_there = callee.pc - locations->start < locations->end - locations->start;

		if (full_step(&frame, map, &bounds) != RULE_STEPPED)
			return;
		if (is_there && learning->found->calls < TRIAL_CALLS) {
			compare_locations(learning, callee.registers, frame.registers[CFI_STACK_POINTER]);
			learning->called_from[learning->found->calls++] = callee.pc;
			return;
		}
	}
}

static void search_frame(struct learning *learning)
{
	union {
		const void *words[STRUCT_BYTES / WORD];
		uint32_t numbers[STRUCT_BYTES / 4];
	} statement = { { NULL } }, inner = { { NULL } };
	bool is_main = learning->kind == TRIAL_MAIN, is_found = false;
	size_t size = read_struct(learning->statement, &statement);

	for (uint32_t i = 0; i < STRUCT_BYTES / WORD; i++) {
		const void *at = i < size / WORD ? statement.words[i] : NULL;
		const void *owner = NULL;
		size_t inner_size;

		if (is_main || !learning->is.frame[i]) {
			learning->is.frame[i] &= !at && i < size / WORD;
			continue;
		}
		if (!at || (uintptr_t)at % WORD || !stack_copy_part((uintptr_t)at, &owner, sizeof(owner)) ||
		    owner != learning->statement) {
			learning->is.frame[i] = false;
			continue;
		}
		/* A later word that is like it may be memory after the statement. */
		if (is_found)
			continue;
		is_found = true;
		inner_size = read_struct(at, &inner);
		for (uint32_t j = 1; j < STRUCT_BYTES / WORD; j++) {
			const void *word = j < inner_size / WORD ? inner.words[j] : NULL;

			if (learning->kind == TRIAL_TRIGGER)
				learning->is.bytecode[j] &= (uintptr_t)word == learning->bytecode;
			learning->is.parent[j] =
				learning->is.parent[j] &&
				(learning->kind == TRIAL_NESTED
			                 ? word && (uintptr_t)word % WORD == 0 &&
			                           stack_copy_part((uintptr_t)word, &owner, sizeof(owner)) &&
			                           owner == learning->statement && word != at
			                 : !word);
		}
		for (uint32_t j = 0; learning->kind == TRIAL_TRIGGER && j < STRUCT_BYTES / 4; j++)
			learning->is.pc[j] &= j < inner_size / 4 && inner.numbers[j] == learning->caller;
	}
}

/* In the library's callback. Not inlined, because it needs a frame of its own. */
__attribute__((noinline)) static void inspect_here(struct learning *learning)
{
	unsigned side = publish_enter_reader();
	const struct code_map *map = code_map_current();
	ucontext_t context;

	if (learning->inspects && map) {
		registers_here(&context);
		if (learning->kind == TRIAL_MAIN)
			walk(learning, map, &context);
		/* Without a trigger, no call has a frame for it. */
		if (learning->kind != TRIAL_MAIN || !learning->has_searched)
			search_frame(learning);
		learning->has_searched = true;
	}
	publish_leave_reader(side);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static void on_call(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct learning *learning = sqlite3_user_data(context);

	(void)count, (void)values;
	inspect_here(learning);
	learning->api->result_int(context, 1);
}

static void on_end(sqlite3_context *context)
{
	((struct learning *)sqlite3_user_data(context))->api->result_int(context, 1);
}

static int on_compare(void *context, int a_size, const void *a, int b_size, const void *b)
{
	int order = memcmp(a, b, (size_t)(a_size < b_size ? a_size : b_size));

	inspect_here(context);
	return order ? order : a_size - b_size;
}

/* --- trials --------------------------------------------------------------------------------- */

/* The statement's counts differ from trial to trial. */
static void search_counters(struct learning *learning, sqlite3_stmt *stmt)
{
	enum { FIRST = SQLITE_STMTSTATUS_FULLSCAN_STEP, LAST = SQLITE_STMTSTATUS_REPREPARE };
	uint32_t numbers[STRUCT_BYTES / 4] = { 0 }, counted;
	size_t count = read_struct(stmt, numbers) / 4;

	for (uint32_t which = FIRST; which <= LAST; which++) {
		counted = (uint32_t)learning->api->stmt_status(stmt, (int)which, 0);
		for (uint32_t i = 0; i < STRUCT_BYTES / 4; i++)
			learning->is.counter[i] &= i + which < count && numbers[i + which] == counted;
	}
}

static void run_trial(struct learning *learning, const struct trial *trial)
{
	uint32_t count = explain(learning, trial->sql);
	sqlite3_stmt *stmt = prepare(learning, "", trial->sql);

	learning->kind = trial->kind;
	if (stmt && count < BYTECODE_MAX && inspect_statement(learning, stmt, count) &&
	    (learning->caller = find_caller(learning, trial->opcodes))) {
		learning->inspects = true;
		learning->has_searched = false;
		while (learning->api->step(stmt) == SQLITE_ROW)
			;
		learning->inspects = false;
		search_counters(learning, stmt);
	}
	learning->api->finalize(stmt);
}

static uint32_t first_of(const bool *is, uint32_t count, uint32_t unit)
{
	for (uint32_t i = 0; i < count; i++)
		if (is[i])
			return i * unit;
	return 0;
}

/* The location's number in struct opcode_locations. */
static uint8_t location_of(int candidate)
{
	return (uint8_t)(candidate < REGISTERS ? 1 + kept_registers[candidate]
	                                       : OPCODE_SLOT + 1 + candidate - REGISTERS);
}

/* Whether the code was understood: it reports no location that held another opcode, or none. */
static bool is_confirmed(const struct learning *learning)
{
	const struct opcode_locations *locations = &learning->found->locations;
	const uint32_t calls = learning->found->calls;
	uint32_t confirmed = 0;

	for (uint32_t call = 0; call < calls; call++) {
		const uint8_t location = locations->locations[learning->called_from[call] - locations->start];
		int candidate = 0;

		while (candidate < CANDIDATES && location != location_of(candidate))
			candidate++;
		if (candidate < CANDIDATES && !learning->is_held[call][candidate])
			return false;
		confirmed += candidate < CANDIDATES;
	}
	debug_log(DEBUG_HOOKS, "opcode: the code is right in %u of %u calls", confirmed, calls);
	return confirmed > calls / 2;
}

/* False: the interpreter's code is not understood. */
static bool find_locations(const struct learning *learning, struct opcode_locations *locations)
{
	const size_t size = locations->end - locations->start;
	unsigned side = publish_enter_reader();

	locations->locations = size ? malloc(size) : NULL;
	const bool is_found = locations->locations &&
	                      opcode_flow_find(code_map_current(), locations->start, locations->end,
	                                       locations->locations) &&
	                      is_confirmed(learning);
	publish_leave_reader(side);
	return is_found;
}

/* False: something was not found. */
static bool conclude(struct learning *learning)
{
	struct opcode_locations *locations = &learning->found->locations;

	locations->n_op = first_of(learning->is.count, STRUCT_BYTES / 4, 4);
	learning->found->counters = first_of(learning->is.counter, STRUCT_BYTES / 4, 4);
	locations->frame = first_of(learning->is.frame, STRUCT_BYTES / WORD, WORD);
	locations->frame_parent = first_of(learning->is.parent, STRUCT_BYTES / WORD, WORD);
	locations->frame_pc = first_of(learning->is.pc, STRUCT_BYTES / 4, 4);
	locations->frame_a_op = first_of(learning->is.bytecode, STRUCT_BYTES / WORD, WORD);
	if (learning->failed || !locations->n_op || !locations->frame || !locations->frame_pc ||
	    !locations->frame_parent || !locations->frame_a_op)
		return false;
	/* If the interpreter's code is not understood, or has no unwind information, bytecode is read, but
	 * not which of its opcodes runs: no address is in the code. */
	if (!find_locations(learning, locations)) {
		free(locations->locations);
		locations->locations = NULL;
		locations->start = locations->end = 0;
	}
	return true;
}

static bool open_connection(struct learning *learning)
{
	const sqlite3_api_routines *api = learning->api;

	return api->open_v2(":memory:", &learning->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
	               SQLITE_OK &&
	       api->create_function(learning->db, "qp_at", -1, SQLITE_UTF8, learning, on_call, NULL, NULL) ==
	               SQLITE_OK &&
	       api->create_function(learning->db, "qp_all", -1, SQLITE_UTF8, learning, NULL, on_call,
	                            on_end) == SQLITE_OK &&
	       api->create_collation(learning->db, "qp_order", SQLITE_UTF8, learning, on_compare) ==
	               SQLITE_OK &&
	       api->exec(learning->db, opcode_schema, NULL, NULL, NULL) == SQLITE_OK;
}

static bool learn(const struct host_library *library, const struct thread *thread,
                  struct opcode_library *found)
{
	struct learning *learning = calloc(1, sizeof(*learning));
	bool is_found = false;

	if (!learning)
		return false;
	learning->api = host_api(library);
	learning->thread = thread;
	learning->found = found;
	memset(&learning->is, 1, sizeof(learning->is));
	learning->is.parent[0] = learning->is.bytecode[0] = false;
	if (open_connection(learning)) {
		for (const struct trial *trial = opcode_trials; trial->sql && !learning->failed; trial++)
			run_trial(learning, trial);
		is_found = conclude(learning);
		if (is_found)
			opcode_names_find(found->names, learning->names, library);
		callbacks_find(&found->callbacks, learning->api, learning->db);
		found->modules = module_list_find(learning->api, learning->db);
		/* Earlier, a program that runs lacks most of the nodes of EXPLAIN QUERY PLAN, so the others
		 * have other numbers. */
		if (learning->api->libversion_number() >= SAME_NODES_SINCE)
			found->scan_status =
				(scan_status_function *)host_function(library, "sqlite3_stmt_scanstatus");
	}
	debug_log(DEBUG_HOOKS,
	          "opcode: %s: code %#lx-%#lx, %u bytes each, a_op %u, n_op %u, frame %u, parent %u, pc %u, "
	          "counters %u, authorizer %u, progress %u, modules %u",
	          library->name, (unsigned long)found->locations.start, (unsigned long)found->locations.end,
	          found->locations.op_bytes, found->locations.a_op, found->locations.n_op,
	          found->locations.frame, found->locations.frame_parent, found->locations.frame_pc,
	          found->counters, found->callbacks.authorizer.at, found->callbacks.progress.at,
	          found->modules);
	host_api(library)->close(learning->db);
	free(learning);
	return is_found;
}

void opcode_library_learn_now(const struct host_library *library, const struct thread *thread)
{
	size_t number = (size_t)(library - host_libraries);
	struct call call;

	if (__atomic_exchange_n(&tried[number], true, __ATOMIC_RELAXED))
		return;
	const int64_t memory = memory_sample_pause();
	call_enter_quiet(&call, library, __builtin_frame_address(0));
	host_enter_statics();
	__atomic_store_n(&learner, gettid(), __ATOMIC_RELAXED);
	/* Release: with opcode_library(). */
	if (auto_extensions_are_own(library) && learn(library, thread, &libraries[number]))
		__atomic_store_n(&host_libraries[number].opcodes, &libraries[number], __ATOMIC_RELEASE);
	__atomic_store_n(&learner, 0, __ATOMIC_RELAXED);
	host_leave_statics();
	call_leave(&call);
	memory_sample_resume(memory);
	__atomic_store_n(&host_libraries[number].opcodes_tried, true, __ATOMIC_RELAXED);
}
