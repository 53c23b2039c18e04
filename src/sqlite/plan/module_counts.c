/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/module_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/vector.h"
#include "handler/unwind/stack_copy.h"
#include "sqlite/library/calling.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/plan/module_methods.h"
#include "sqlite/plan/publish.h"
#include "sqlite/runs/runs.h"

#define AT(type, base, offset) (*(type const *)((const char *)(base) + (offset)))
#define WORD sizeof(uintptr_t)

/* One record has the loops of a run. */
#define LOOPS_MAX (BYTECODE_ROWS_BYTES / sizeof(struct module_loop_row))

/* The bytecode that runs: the statement's own, or that of its trigger. */
struct program {
	const void *opcodes;
	uint32_t count;
	uint32_t caller; /* the number of the statement's opcode that called the trigger, plus 1; 0: none */
};

/* An opcode VFilter, and what it passes to xFilter. */
struct module_loop {
	struct program program;
	uint32_t at;
	struct opcode_bytes bytes; /* P1: the number of its cursor; P4: a text */
	int32_t index, argc;
	bool has_index; /* and argc */
	bool is_sole;   /* no other opcode begins loops of its cursor */
	/* In this run. */
	const sqlite3_vtab_cursor *cursor; /* whose newest loop it is; NULL: none */
	bool is_unclear;                   /* another opcode may have begun a loop */
	int64_t loops, rows;
};

struct module_counts {
	const void *opcodes; /* of the statement; NULL: none */
	uint32_t a_op;       /* in the statement: the bytecode that runs */
	uint32_t location;   /* of cursor_locations */
	struct query_key run;
	bool is_lost;
	VECTOR(struct module_loop) loops;
};

/* --- the module's cursor in SQLite's ----------------------------------------------------------- */

#define STATEMENT_WORDS 32 /* of a statement and of a cursor, whose structures are larger in all versions */
#define CURSOR_WORDS 16
#define SEARCHES_MAX 20

/* In the statement the array of cursors, and in a cursor the module's; 0: not known. Neither is public, so a
 * cursor that a module gets is searched, once for each library. Relaxed atomics. */
static uint32_t cursor_locations[HOST_LIBRARIES_MAX], searches[HOST_LIBRARIES_MAX];

static bool is_pointer(uintptr_t word)
{
	return word >= STACK_COPY_BYTES && word % WORD == 0;
}

static bool read_pointer(uintptr_t at, uintptr_t *pointer)
{
	return stack_copy_part(at, pointer, sizeof(*pointer)) && is_pointer(*pointer);
}

/* How many of the statement's loops have a cursor with a table there, if the array is at `cursors`. SQLite
 * opens most of them before the first loop begins. */
static uint32_t count_cursors(const struct module_counts *counts, uintptr_t cursors, uint32_t at)
{
	uint32_t found = 0;
	uintptr_t word;

	for (size_t i = 0; i < counts->loops.count; i++)
		found += read_pointer(cursors + (size_t)counts->loops.items[i].bytes.p1 * WORD, &word) &&
		         read_pointer(word + at, &word) && read_pointer(word, &word);
	return found;
}

/* The place in a cursor of that number where the module's is, 0: nowhere. */
static uint32_t find_in_cursor(uintptr_t cursors, int32_t number, const void *cursor)
{
	uintptr_t words[CURSOR_WORDS], one;

	if (number < 0 || !read_pointer(cursors + (size_t)number * WORD, &one) ||
	    !stack_copy_part(one, words, sizeof(words)))
		return 0;
	for (uint32_t i = 1; i < CURSOR_WORDS; i++)
		if (words[i] == (uintptr_t)cursor)
			return i * WORD;
	return 0;
}

/* A word of another array may lead to the cursor by chance: by the number of another loop. */
static uint32_t search_location(const void *statement, const struct module_counts *counts, const void *cursor)
{
	uintptr_t words[STATEMENT_WORDS];
	uint32_t found = 0, most = 0;

	if (!stack_copy_part((uintptr_t)statement, words, sizeof(words)))
		return 0;
	for (uint32_t i = 1; i < STATEMENT_WORDS; i++)
		for (size_t j = 0; is_pointer(words[i]) && j < counts->loops.count; j++) {
			const uint32_t at = find_in_cursor(words[i], counts->loops.items[j].bytes.p1, cursor),
				       location = i * WORD << 16 | at,
				       count = at ? count_cursors(counts, words[i], at) : 0;

			if (count > most) {
				found = location;
				most = count;
			} else if (count && count == most && location != found) {
				found = 0;
			}
		}
	return found;
}

static uint32_t location_of(const struct run *run, const struct module_counts *counts, const void *cursor)
{
	const size_t library = (size_t)(run->session->library - host_libraries);
	uint32_t location = __atomic_load_n(&cursor_locations[library], __ATOMIC_RELAXED);

	if (__builtin_expect(location != 0, 1))
		return location;
	if (__atomic_fetch_add(&searches[library], 1, __ATOMIC_RELAXED) >= SEARCHES_MAX)
		return 0;
	location = search_location(run->stmt, counts, cursor);
	debug_log(DEBUG_HOOKS, "modules: cursors at %#x", location);
	__atomic_store_n(&cursor_locations[library], location, __ATOMIC_RELAXED);
	return location;
}

/* --- loops ------------------------------------------------------------------------------------- */

/* False: it belongs to a trigger that another one has fired, which is one node of the plan. `*opcodes`: the
 * statement's own. */
static bool find_program(const struct opcode_locations *at, const void *statement, struct program *program,
                         const void **opcodes)
{
	const void *frame = AT(void *, statement, at->frame);

	program->opcodes = *opcodes = AT(void *, statement, at->a_op);
	program->count = AT(uint32_t, statement, at->n_op);
	program->caller = 0;
	if (!frame)
		return true;
	program->caller = AT(uint32_t, frame, at->frame_pc) + 1;
	*opcodes = AT(void *, frame, at->frame_a_op);
	return !AT(void *, frame, at->frame_parent);
}

static bool is_same_program(const struct program *a, const struct program *b)
{
	return a->opcodes == b->opcodes && a->count == b->count && a->caller == b->caller;
}

static bool has_program(const struct module_counts *counts, const struct program *program)
{
	for (size_t i = 0; i < counts->loops.count; i++)
		if (is_same_program(&counts->loops.items[i].program, program))
			return true;
	return false;
}

/* Integer for the number, Integer for the number of arguments, VFilter. */
static void read_index(struct module_loop *loop, const struct opcode_library *library)
{
	const struct opcode_bytes *argc = opcode_at(library, loop->program.opcodes, loop->at - 1),
				  *index = opcode_at(library, loop->program.opcodes, loop->at - 2);

	loop->index = index->p1;
	loop->argc = argc->p1;
	loop->has_index = !strcmp(library->names[index->opcode], "Integer") && index->p2 == loop->bytes.p3 &&
	                  !strcmp(library->names[argc->opcode], "Integer") && argc->p2 == loop->bytes.p3 + 1;
}

/* False: they are too many, and none is known. */
static bool add_loops(struct module_counts *counts, const struct opcode_library *library,
                      const struct program *program)
{
	for (uint32_t i = 2; i < program->count; i++) {
		const struct opcode_bytes *opcode = opcode_at(library, program->opcodes, i);
		struct module_loop *loop;

		if (strcmp(library->names[opcode->opcode], "VFilter") != 0)
			continue;
		loop = counts->loops.count < LOOPS_MAX ? vector_add(&counts->loops) : NULL;
		if (!loop) {
			counts->loops.count = 0;
			return false;
		}
		*loop = (struct module_loop){
			.program = *program, .at = i, .bytes = *opcode, .is_sole = true
		};
		read_index(loop, library);
		for (struct module_loop *other = counts->loops.items; other < loop; other++)
			if (is_same_program(&other->program, program) && other->bytes.p1 == opcode->p1)
				loop->is_sole = other->is_sole = false;
	}
	return true;
}

static const void *cursor_of(const void *statement, uint32_t location, int32_t number)
{
	const void *cursor = AT(void **, statement, location >> 16)[number];

	return cursor ? AT(void *, cursor, location & 0xffff) : NULL;
}

static bool is_of_run(const struct module_counts *counts, const struct run *run)
{
	return counts->run.hi == run->query.key.hi && counts->run.lo == run->query.key.lo;
}

/* The run's counts, for the bytecode that the statement has now. NULL: it has none. */
static struct module_counts *counts_of(struct run *run, const void *opcodes)
{
	struct module_counts *counts = run->module_counts;

	if (!counts)
		counts = run->module_counts = calloc(1, sizeof(*counts));
	if (!counts)
		return NULL;
	if (counts->opcodes != opcodes)
		module_counts_forget(counts);
	if (!is_of_run(counts, run)) {
		counts->run = run->query.key;
		counts->is_lost = false;
		for (size_t i = 0; i < counts->loops.count; i++) {
			struct module_loop *loop = &counts->loops.items[i];

			loop->cursor = NULL;
			loop->is_unclear = false;
			loop->loops = loop->rows = 0;
		}
	}
	counts->opcodes = opcodes;
	return counts;
}

/* The run that the thread's innermost call owns, NULL: none. `*slot`: of that call. */
static struct run *find_run(struct calling *calling, const void *frame, const struct call_slot **slot)
{
	*slot = calling ? calling_find(calling, frame) : NULL;
	return *slot && (*slot)->run && runs_is_own((*slot)->run, call_slot_number(*slot)) ? (*slot)->run
	                                                                                   : NULL;
}

/* SQLite may have prepared other bytecode at the address of former bytecode. */
static bool is_begun(const struct module_loop *loop, const struct opcode_library *library,
                     const struct program *program, const void *statement, uint32_t location,
                     const void *cursor, const struct module_filter *call)
{
	return is_same_program(&loop->program, program) &&
	       !memcmp(opcode_at(library, program->opcodes, loop->at), &loop->bytes, sizeof(loop->bytes)) &&
	       loop->bytes.p4 == call->text &&
	       (!loop->has_index || (loop->index == call->index && loop->argc == call->argc)) &&
	       cursor_of(statement, location, loop->bytes.p1) == cursor;
}

/* A cursor that another statement has, whose runs are not followed, is none of the run's. */
static void begin_loop(struct module_counts *counts, const struct opcode_library *library,
                       const struct program *program, const struct run *run,
                       const sqlite3_vtab_cursor *cursor, const struct module_filter *call)
{
	const uint32_t location = location_of(run, counts, cursor);
	struct module_loop *begun = NULL;

	counts->location = location;
	counts->a_op = library->locations.a_op;
	counts->is_lost |= !location;
	for (size_t i = 0; i < counts->loops.count; i++) {
		struct module_loop *loop = &counts->loops.items[i];

		if (loop->cursor == cursor)
			loop->cursor = NULL;
		if (!location || !is_begun(loop, library, program, run->stmt, location, cursor, call))
			continue;
		if (begun)
			loop->is_unclear = begun->is_unclear = true;
		begun = loop;
	}
	if (!begun)
		return;
	begun->cursor = cursor;
	begun->loops++;
	/* Now SQLite has set the cursor's table. The host may have copied some methods only. */
	if (cursor->pVtab->pModule->xFilter != call->filter ||
	    cursor->pVtab->pModule->xEof != call->is_at_end)
		counts->is_lost = true;
}

/* The loop of a cursor that the run's statement has now. NULL: it has none. */
static struct module_loop *find_loop(const struct run *run, const sqlite3_vtab_cursor *cursor)
{
	struct module_counts *counts = run->module_counts;

	if (!counts || !counts->location || !is_of_run(counts, run))
		return NULL;
	for (size_t i = 0; i < counts->loops.count; i++) {
		struct module_loop *loop = &counts->loops.items[i];

		if (loop->cursor == cursor && loop->program.opcodes == AT(void *, run->stmt, counts->a_op) &&
		    cursor_of(run->stmt, counts->location, loop->bytes.p1) == cursor)
			return loop;
	}
	return NULL;
}

/* The same in the call in which rows were counted last, if it has not returned. */
static struct module_loop *find_loop_again(const struct calling *calling, const sqlite3_vtab_cursor *cursor)
{
	const struct call_slot *slot = calling->rows.slot;

	if (!slot || call_slot_number(slot) != calling->rows.call || !slot->run || !slot->run->stmt ||
	    !runs_is_own(slot->run, calling->rows.call))
		return NULL;
	return find_loop(slot->run, cursor);
}

static __attribute__((noinline)) void begin_slowly(struct calling *calling, const sqlite3_vtab_cursor *cursor,
                                                   const struct module_filter *call)
{
	const struct call_slot *slot;
	struct run *run = find_run(calling, __builtin_frame_address(0), &slot);
	const struct opcode_library *library =
		run && run->stmt ? opcode_library(run->session->library) : NULL;
	struct module_counts *counts;
	struct program program;
	const void *opcodes;

	calling->rows.cursor = NULL; /* it may have another loop, and loops may move */
	/* A library that counts loops itself reports all of them. */
	if (!library || library->scan_status)
		return;
	if (!find_program(&library->locations, run->stmt, &program, &opcodes) ||
	    !(counts = counts_of(run, opcodes)))
		return;
	if (!has_program(counts, &program))
		counts->is_lost |= !add_loops(counts, library, &program);
	begin_loop(counts, library, &program, run, cursor, call);
	calling->rows.slot = slot;
	calling->rows.call = call_slot_number(slot);
}

void module_counts_loop(const sqlite3_vtab_cursor *cursor, const struct module_filter *call)
{
	struct calling *calling = calling_current;
	struct module_loop *loop = calling ? find_loop_again(calling, cursor) : NULL;

	if (__builtin_expect(loop && loop->is_sole, 1)) {
		loop->loops++;
		calling->rows.cursor = cursor;
		calling->rows.rows = &loop->rows;
	} else if (calling) {
		begin_slowly(calling, cursor, call);
	}
}

/* Later rows of the loop in this call are counted without a search. */
static __attribute__((noinline)) void count_row(struct calling *calling, const sqlite3_vtab_cursor *cursor)
{
	struct module_loop *loop = find_loop_again(calling, cursor);
	const struct call_slot *slot;
	const struct run *run;

	if (!loop && (run = find_run(calling, __builtin_frame_address(0), &slot)) && run->stmt &&
	    (loop = find_loop(run, cursor))) {
		calling->rows.slot = slot;
		calling->rows.call = call_slot_number(slot);
	}
	if (loop) {
		loop->rows++;
		calling->rows.cursor = cursor;
		calling->rows.rows = &loop->rows;
	}
}

void module_counts_row(const sqlite3_vtab_cursor *cursor)
{
	struct calling *calling = calling_current;

	if (__builtin_expect(!calling, 0))
		return;
	if (calling->rows.cursor == cursor && call_slot_number(calling->rows.slot) == calling->rows.call)
		++*calling->rows.rows;
	else
		count_row(calling, cursor);
}

/* --- the end of a run --------------------------------------------------------------------------- */

void module_counts_publish(const struct run *run, uint64_t bytecode)
{
	const struct module_counts *counts = run->module_counts;
	const struct opcode_library *library = opcode_library(run->session->library);
	struct module_loop_row rows[LOOPS_MAX];
	size_t count = 0;

	/* The first step of a run that includes its preparation was after that. Acquire: with set_methods().
	 */
	if (!counts || !library || counts->is_lost || !is_of_run(counts, run) ||
	    counts->opcodes != AT(void *, run->stmt, library->locations.a_op) ||
	    __atomic_load_n(&module_methods_changed_ns, __ATOMIC_ACQUIRE) >=
	            run->query.start_monotonic_ns + run->query.prepare_ns)
		return;
	for (size_t i = 0; i < counts->loops.count; i++) {
		const struct module_loop *loop = &counts->loops.items[i];
		const uint64_t at = loop->at, caller = loop->program.caller;

		if (!loop->is_unclear)
			rows[count++] = (struct module_loop_row){ { ROW_MODULE_LOOP, sizeof(*rows), 0 },
				                                  caller ? (caller - 1) | (at + 1) << 32 : at,
				                                  loop->loops,
				                                  loop->rows };
	}
	publish_counts(run->query.key, bytecode, rows, count * sizeof(*rows));
}

void module_counts_forget(struct module_counts *counts)
{
	if (!counts)
		return;
	counts->opcodes = NULL;
	counts->run = (struct query_key){ 0 };
	counts->loops.count = 0;
}
