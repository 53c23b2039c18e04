/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/plan/opcode_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/x86_64.h"
#include "handler/unwind/rules.h"
#include "handler/unwind/stack_copy.h"
#include "watch/plan/opcode_effects.h"

#if defined(__x86_64__)
#define IS_FOLLOWED true
#else
#define IS_FOLLOWED false
#endif
#define NONE UINT32_MAX
#define TABLES_MAX 32
#define TABLE_MAX 256  /* entries */
#define MAIN_TABLE 128 /* entries at least of the table by opcodes; SQLite 3.31 has 176 opcodes */
#define PARTS_MAX 4
#define CODE_MAX (1u << 20) /* bytes of all parts: an interpreter has 26,000 to 60,000 */
#define VISITS_MAX 16       /* of a step on average: interpreters need little more than 1 */
#define CALLEE_BYTES_MAX 1024
#define CALLEES_DEEP 3
#define CALLEES_MAX (1u << 20) /* bytes of all of them */
#define CALLEES_KNOWN 512
#define WINDOW 24 /* instructions between the look at the opcode and the jump */

/* The places that hold the address: bits 0 to 15 are registers, the others slots. */
struct held {
	uint64_t words[4];
};

struct table {
	uint32_t jump; /* the step that goes by it */
	uint32_t count;
	uint32_t targets[TABLE_MAX]; /* steps */
};

/* A compiler moves what is unlikely elsewhere. */
struct part {
	uintptr_t start;
	uint32_t size;
	uint32_t at; /* as if the parts stood one behind the other */
};

/* What a called function was found to change, looked into so deep. */
struct callee {
	uintptr_t function;
	uint16_t deep, kills;
};

struct flow {
	struct cfi_section section;
	uintptr_t start, end; /* of the library's code */
	struct callee callees[CALLEES_KNOWN];
	uint32_t callee_bytes;
	struct part parts[PARTS_MAX]; /* the first is the function's own */
	uint32_t part_count, size;
	struct step *steps;
	uint32_t count;
	uint32_t *step_at;         /* for each byte, NONE: no instruction begins there */
	bool *is_target;           /* some step jumps there */
	struct held *in;           /* before each step */
	bool *is_reached, *is_due; /* due: what it has has changed */
	struct table *tables;
	uint32_t table_count;
	bool has_changed;
};

static bool has(const struct held *held, uint32_t place)
{
	return held->words[place / 64] >> place % 64 & 1;
}

static void add(struct held *held, uint32_t place)
{
	held->words[place / 64] |= UINT64_C(1) << place % 64;
}

static void drop(struct held *held, uint32_t place)
{
	held->words[place / 64] &= ~(UINT64_C(1) << place % 64);
}

static bool is_written(const struct step *step, uint32_t place)
{
	return place < STEP_REGISTERS ? step->kills >> place & 1
	                              : place >= step->slot && place < (uint32_t)step->slot + step->slots;
}

static void apply(const struct step *step, struct held *held)
{
	const bool copies = step->to != STEP_NO_PLACE && has(held, step->from);

	if (step->forgets)
		memset(held, 0, sizeof *held);
	held->words[0] &= ~(uint64_t)step->kills;
	for (uint32_t i = 0; i < step->slots; i++)
		drop(held, step->slot + i);
	if (step->to != STEP_NO_PLACE)
		drop(held, step->to);
	if (copies)
		add(held, step->to);
	if (step->looked_at != STEP_NO_PLACE) {
		if (!has(held, step->looked_at))
			memset(held, 0, sizeof *held);
		add(held, step->looked_at);
		if (step->looked_at_too != STEP_NO_PLACE)
			add(held, step->looked_at_too);
	}
}

/* --- the code's steps ---------------------------------------------------------------------- */

/* NONE: it is in no part. */
static uint32_t offset_of(const struct flow *flow, uintptr_t address)
{
	for (uint32_t i = 0; i < flow->part_count; i++)
		if (address - flow->parts[i].start < flow->parts[i].size)
			return flow->parts[i].at + (uint32_t)(address - flow->parts[i].start);
	return NONE;
}

static const unsigned char *code_of(const struct flow *flow, uint32_t offset)
{
	uint32_t i = flow->part_count - 1;

	while (offset < flow->parts[i].at)
		i--;
	return (const unsigned char *)flow->parts[i].start + (offset - flow->parts[i].at);
}

/* Unwind information may be wrong: no function reaches beyond its library's code. */
static bool find_function(const struct flow *flow, uintptr_t address, struct cfi_row *row)
{
	return cfi_find_row(&flow->section, address, row) == CFI_FOUND &&
	       row->function_start >= flow->start && row->function_start < row->function_end &&
	       row->function_end <= flow->end;
}

/* False: there is no room. */
static bool add_part(struct flow *flow, uintptr_t start, uintptr_t end)
{
	const uint32_t size = flow->size;
	struct step *steps;
	uint32_t *step_at;

	if (flow->part_count == PARTS_MAX || end - start > CODE_MAX - size)
		return false;
	flow->size += (uint32_t)(end - start);
	if ((steps = realloc(flow->steps, flow->size * sizeof *steps)))
		flow->steps = steps;
	if ((step_at = realloc(flow->step_at, flow->size * sizeof *step_at)))
		flow->step_at = step_at;
	if (!steps || !step_at)
		return false;
	memset(step_at + size, 0xff, (flow->size - size) * sizeof *step_at);
	flow->parts[flow->part_count++] = (struct part){ start, flow->size - size, size };
	return true;
}

/* The row changes where the stack pointer does, and where other code begins. */
static bool changes_row(const struct step *step)
{
	return step->kills >> STEP_STACK_POINTER & 1 || !(step->flow & FLOW_NEXT);
}

static bool is_call(const struct x86_instruction *instruction)
{
	return instruction->map == X86_ONE_BYTE && instruction->opcode == 0xe8;
}

static uint16_t changed_by(struct flow *flow, uintptr_t function, int deep);

/* STEP_CHANGED_BY_CALLS, too, for code that goes elsewhere. */
static uint16_t changed_in(struct flow *flow, const struct cfi_row *row, int deep)
{
	const struct step_frame frame = { STEP_STACK_POINTER, 0 };
	const uintptr_t size = row->function_end - row->function_start;
	uint16_t kills = 0;

	for (uintptr_t at = row->function_start; at < row->function_end && kills != STEP_CHANGED_BY_CALLS;) {
		const unsigned char *bytes = (const unsigned char *)at;
		struct x86_instruction instruction;
		struct step step;

		if (!x86_decode(bytes, row->function_end - at, &instruction))
			return STEP_CHANGED_BY_CALLS;
		step_read(&step, &instruction, bytes, &frame);
		if (is_call(&instruction))
			step.kills = changed_by(flow, x86_place(&instruction, bytes, at), deep - 1);
		kills |= step.kills & STEP_CHANGED_BY_CALLS;
		if (step.forgets || step.flow & FLOW_TABLE ||
		    (step.flow & FLOW_TARGET &&
		     x86_place(&instruction, bytes, at) - row->function_start >= size))
			return STEP_CHANGED_BY_CALLS;
		at += instruction.length;
	}
	return kills;
}

/* The registers that a called function changes. gcc looks, too, and leaves the address in the others. */
static uint16_t changed_by(struct flow *flow, uintptr_t function, int deep)
{
	struct callee *known = &flow->callees[(function / 16 * 4 + (unsigned)deep) % CALLEES_KNOWN];
	uint16_t kills = STEP_CHANGED_BY_CALLS;
	struct cfi_row row;

	if (deep == 0)
		return kills;
	if (known->function == function && known->deep == deep)
		return known->kills;
	if (find_function(flow, function, &row) && row.function_start == function &&
	    row.function_end - function <= CALLEE_BYTES_MAX && flow->callee_bytes < CALLEES_MAX) {
		flow->callee_bytes += (uint32_t)(row.function_end - function);
		kills = changed_in(flow, &row, deep);
	}
	*known = (struct callee){ function, (uint16_t)deep, kills };
	return kills;
}

/* A conditional branch to elsewhere is no call of another function: a compiler moves there what is
 * unlikely. */
static void follow_branch(struct flow *flow, const struct step *step, uintptr_t target)
{
	struct cfi_row row;

	if (step->flow == (FLOW_NEXT | FLOW_TARGET) && offset_of(flow, target) == NONE &&
	    find_function(flow, target, &row))
		add_part(flow, row.function_start, row.function_end);
}

static bool decode_part(struct flow *flow, const struct part *part)
{
	const unsigned char *code = (const unsigned char *)part->start;
	struct cfi_row row = { .cfa_offset = 0 };
	bool is_row_known = false;

	for (uint32_t at = 0; at < part->size; flow->count++) {
		const uintptr_t address = part->start + at;
		struct x86_instruction instruction;
		struct step_frame frame;
		struct step step;

		if (!x86_decode(code + at, part->size - at, &instruction))
			return false;
		if (!is_row_known &&
		    (cfi_find_row(&flow->section, address, &row) != CFI_FOUND || row.cfa_by_expression))
			return false;
		frame.base = step_register(row.cfa_register);
		frame.offset = row.cfa_offset;
		step_read(&step, &instruction, code + at, &frame);
		if (is_call(&instruction))
			step.kills =
				changed_by(flow, x86_place(&instruction, code + at, address), CALLEES_DEEP);
		step.at = part->at + at;
		step.target = NONE;
		if (step.flow & FLOW_TARGET) {
			const uintptr_t target = x86_place(&instruction, code + at, address);

			step.target = (uint32_t)(target - address);
			follow_branch(flow, &step, target);
		}
		flow->steps[flow->count] = step;
		flow->step_at[step.at] = flow->count;
		is_row_known = !changes_row(&step);
		at += instruction.length;
	}
	flow->steps[flow->count - 1].flow &= (uint8_t)~FLOW_NEXT;
	return true;
}

/* Until now a target is a distance: its part may have come later. */
static bool find_targets(struct flow *flow)
{
	for (uint32_t i = 0; i < flow->count; i++) {
		struct step *step = &flow->steps[i];

		if (!(step->flow & FLOW_TARGET))
			continue;
		step->target = offset_of(flow, (uintptr_t)code_of(flow, step->at) +
		                                       (uintptr_t)(intptr_t)(int32_t)step->target);
		if (step->target == NONE)
			continue;
		step->target = flow->step_at[step->target];
		if (step->target == NONE)
			return false;
		flow->is_target[step->target] = true;
	}
	return true;
}

static bool decode(struct flow *flow)
{
	/* More are added on the way. */
	for (uint32_t i = 0; i < flow->part_count; i++)
		if (!decode_part(flow, &flow->parts[i]))
			return false;
	flow->is_target = calloc(flow->count, sizeof *flow->is_target);
	flow->in = calloc(flow->count, sizeof *flow->in);
	flow->is_reached = calloc(flow->count, sizeof *flow->is_reached);
	flow->is_due = calloc(flow->count, sizeof *flow->is_due);
	flow->tables = malloc(TABLES_MAX * sizeof *flow->tables);
	return flow->is_target && flow->in && flow->is_reached && flow->is_due && flow->tables &&
	       find_targets(flow);
}

/* --- jumps by tables ------------------------------------------------------------------------- */

/* Entries are distances from the table (4 bytes) or addresses (8). */
static uint32_t read_table(const struct flow *flow, uintptr_t at, size_t width, uint32_t *targets)
{
	unsigned char bytes[TABLE_MAX * 8];
	size_t size = TABLE_MAX * width;
	uint32_t count = 0;

	while (size && !stack_copy_part(at, bytes, size))
		size -= 16;
	for (; count < size / width; count++) {
		uint64_t address = 0;
		int32_t distance;

		if (width == sizeof address)
			memcpy(&address, bytes + count * width, width);
		else {
			memcpy(&distance, bytes + count * width, width);
			address = at + (uint64_t)(int64_t)distance;
		}
		const uint32_t offset = offset_of(flow, address);

		if (offset == NONE || flow->step_at[offset] == NONE)
			break;
		targets[count] = flow->step_at[offset];
	}
	return count;
}

/* The table is named by the jump or by one of the last instructions before it. */
static void find_table(struct flow *flow, uint32_t jump)
{
	struct table *table = &flow->tables[flow->table_count];

	for (uint32_t i = jump; i + WINDOW > jump && i < flow->count; i--) {
		const struct step *step = &flow->steps[i];

		if (!step->names_table)
			continue;
		table->jump = jump;
		table->count = read_table(flow, step_table(code_of(flow, step->at)), step->names_table,
		                          table->targets);
		if (table->count < 2)
			continue;
		for (uint32_t entry = 0; entry < table->count; entry++)
			flow->is_target[table->targets[entry]] = true;
		flow->table_count++;
		return;
	}
}

/* Right before the look, what the register has may lie elsewhere, too. */
static void find_second_place(struct flow *flow, uint32_t look)
{
	struct step *at = &flow->steps[look];

	for (uint32_t i = look; i-- > 0 && i + WINDOW > look && !flow->is_target[i + 1];) {
		const struct step *step = &flow->steps[i];
		uint32_t other = step->to == at->looked_at     ? step->from
		                 : step->from == at->looked_at ? step->to
		                                               : STEP_NO_PLACE;

		if (!(step->flow & FLOW_NEXT))
			return;
		if (step->to != STEP_NO_PLACE && other != STEP_NO_PLACE) {
			for (uint32_t between = i + 1; between < look; between++)
				if (is_written(&flow->steps[between], other) ||
				    flow->steps[between].to == other)
					return;
			at->looked_at_too = (uint8_t)other;
			return;
		}
		if (is_written(step, at->looked_at))
			return;
	}
}

/* The opcode is looked at through the register that has its address. */
static bool find_look(struct flow *flow, uint32_t jump)
{
	for (uint32_t i = jump; i-- > 0 && i + WINDOW > jump;) {
		struct step *step = &flow->steps[i];

		if (step->reads_byte_at == STEP_NO_PLACE)
			continue;
		step->looked_at = step->reads_byte_at;
		find_second_place(flow, i);
		return true;
	}
	return false;
}

/* False: there is no such jump as opcodes need, or there are too many. */
static bool find_jumps(struct flow *flow)
{
	bool is_found = false;

	for (uint32_t i = 0; i < flow->count; i++)
		if (flow->steps[i].flow & FLOW_TABLE) {
			if (flow->table_count == TABLES_MAX)
				return false;
			find_table(flow, i);
		}
	for (uint32_t i = 0; i < flow->table_count; i++)
		if (flow->tables[i].count >= MAIN_TABLE)
			is_found |= find_look(flow, flow->tables[i].jump);
	return is_found;
}

/* --- following it ----------------------------------------------------------------------------- */

static void arrive(struct flow *flow, uint32_t at, const struct held *held)
{
	struct held *in = &flow->in[at], before = *in;

	if (!flow->is_reached[at])
		*in = *held;
	for (int i = 0; i < 4; i++)
		in->words[i] &= held->words[i];
	flow->is_due[at] |= !flow->is_reached[at] || memcmp(&before, in, sizeof before) != 0;
	flow->has_changed |= flow->is_due[at];
	flow->is_reached[at] = true;
}

/* False: it does not come to an end. */
static bool follow(struct flow *flow)
{
	uint64_t visits = 0;

	do {
		flow->has_changed = false;
		for (uint32_t i = 0; i < flow->count; i++) {
			const struct step *step = &flow->steps[i];
			struct held held = flow->in[i];

			if (!flow->is_due[i])
				continue;
			if (visits++ > (uint64_t)flow->count * VISITS_MAX)
				return false;
			flow->is_due[i] = false;
			apply(step, &held);
			if (step->flow & FLOW_NEXT)
				arrive(flow, i + 1, &held);
			if (step->target != NONE)
				arrive(flow, step->target, &held);
			for (uint32_t t = 0; step->flow & FLOW_TABLE && t < flow->table_count; t++)
				for (uint32_t e = 0; flow->tables[t].jump == i && e < flow->tables[t].count;
				     e++)
					arrive(flow, flow->tables[t].targets[e], &held);
		}
	} while (flow->has_changed);
	return true;
}

/* The register that the opcode will be looked at through, STEP_NO_PLACE: not on each way. */
static uint8_t approach_of(const struct flow *flow, uint32_t number)
{
	const struct step *step = &flow->steps[number];
	const uint8_t target = step->target != NONE ? flow->steps[step->target].approaches : STEP_NO_PLACE;
	const uint8_t next = step->flow & FLOW_NEXT ? step[1].approaches : target;

	if (step->looked_at != STEP_NO_PLACE)
		return step->looked_at;
	if (step->flow & FLOW_TABLE || (step->flow & FLOW_TARGET && target != next) || step->forgets ||
	    is_written(step, next) || step->to == next)
		return STEP_NO_PLACE;
	return next;
}

/* Before the opcode is looked at, the register has what comes next. Where each way goes to that look, and
 * none writes the register, it is told, too. What is told of a step rests on such steps only, and stays. */
static void find_approaches(struct flow *flow)
{
	do {
		flow->has_changed = false;
		for (uint32_t i = flow->count; i-- > 0;) {
			struct step *step = &flow->steps[i];

			if (step->approaches != STEP_NO_PLACE)
				continue;
			step->approaches = approach_of(flow, i);
			flow->has_changed |= step->approaches != STEP_NO_PLACE;
		}
	} while (flow->has_changed);
}

/* Slots first: reading a register of a frame that has called takes a walk. */
static uint8_t place_of(const struct held *held, const struct step *step)
{
	const uint64_t registers = held->words[0] & ((1u << STEP_REGISTERS) - 1);

	for (int i = 0; i < 4; i++) {
		const uint64_t slots = held->words[i] ^ (i == 0 ? registers : 0);

		if (slots)
			return (uint8_t)(OPCODE_SLOT + 64 * i + __builtin_ctzll(slots) - STEP_REGISTERS);
	}
	if (registers)
		return (uint8_t)(1 + step_dwarf(63u - (unsigned)__builtin_clzll(registers)));
	return step->approaches != STEP_NO_PLACE ? (uint8_t)(1 + step_dwarf(step->approaches)) : 0;
}

static void write_places(const struct flow *flow, uint8_t *places)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < flow->count && flow->steps[i].at < flow->parts[0].size; i++) {
		const struct step *step = &flow->steps[i];
		uint32_t end = i + 1 < flow->count ? flow->steps[i + 1].at : flow->size;
		struct held held = flow->in[i];

		places[step->at] = place_of(&held, step);
		known += places[step->at] != 0;
		/* A frame that has called is at its call's last byte. */
		apply(step, &held);
		memset(places + step->at + 1, place_of(&held, step), end - step->at - 1);
	}
	debug_log(DEBUG_HOOKS, "opcode: known at %u of %u instructions, %u tables", known, flow->count,
	          flow->table_count);
}

/* What is left after the first time is reached by ways that are not known, but for what fills gaps. */
static bool follow_all(struct flow *flow)
{
	flow->is_reached[0] = flow->is_due[0] = true;
	if (!follow(flow))
		return false;
	for (uint32_t i = 0; i < flow->count; i++)
		if (!flow->is_reached[i] && !flow->steps[i].fills)
			flow->is_reached[i] = flow->is_due[i] = true;
	return follow(flow);
}

/* False: the library is not known. */
static bool find_code(struct flow *flow, const struct code_map *map, uintptr_t address)
{
	const enum section_result found = rules_find_section(map, address, &flow->section);
	const struct code_range *range = found == SECTION_LASTING ? code_map_find(map, address) : NULL;

	if (found > SECTION_NEWER || !flow->section.header)
		return false;
	flow->start = range ? range->start : flow->section.start;
	flow->end = range ? range->end : flow->section.end;
	return true;
}

bool opcode_flow_find(const struct code_map *map, uintptr_t start, uintptr_t end, uint8_t *places)
{
	struct flow *flow = IS_FOLLOWED && map ? calloc(1, sizeof *flow) : NULL;
	bool is_found = false;

	if (!flow)
		return false;
	if (find_code(flow, map, start) && start >= flow->start && start < end && end <= flow->end &&
	    add_part(flow, start, end) && decode(flow) && find_jumps(flow) && follow_all(flow)) {
		find_approaches(flow);
		write_places(flow, places);
		is_found = true;
	}
	free(flow->tables);
	free(flow->is_due);
	free(flow->is_reached);
	free(flow->in);
	free(flow->is_target);
	free(flow->step_at);
	free(flow->steps);
	free(flow);
	return is_found;
}
