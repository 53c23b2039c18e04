/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/graph.h"

#include <stdlib.h>
#include <string.h>

#define CODE_MAX (1u << 20) /* bytes of all parts: an interpreter has 26,000 to 60,000 */
#define VISITS_MAX 16       /* of a step on average: interpreters need little more than 1 */
#define CALLEE_BYTES_MAX 1024
#define CALLEES_DEEP 3
#define CALLEES_MAX (1u << 20) /* bytes of all of them */

bool graph_has(const struct held *held, uint32_t location)
{
	return held->words[location / 64] >> location % 64 & 1;
}

static void add(struct held *held, uint32_t location)
{
	held->words[location / 64] |= UINT64_C(1) << location % 64;
}

static void drop(struct held *held, uint32_t location)
{
	held->words[location / 64] &= ~(UINT64_C(1) << location % 64);
}

bool graph_is_written(const struct step *step, uint32_t location)
{
	if (step->copies[0].to == location || step->copies[1].to == location)
		return true;
	return location < STEP_REGISTERS
	               ? step->kills >> location & 1
	               : location >= step->slot && location < (uint32_t)step->slot + step->slots;
}

void graph_apply(const struct step *step, struct held *held)
{
	bool copies[2];

	for (int i = 0; i < 2; i++)
		copies[i] = step->copies[i].to != STEP_NO_LOCATION && graph_has(held, step->copies[i].from);
	if (step->forgets)
		memset(held, 0, sizeof(*held));
	held->words[0] &= ~(uint64_t)step->kills;
	for (uint32_t i = 0; i < step->slots; i++)
		drop(held, step->slot + i);
	for (int i = 0; i < 2; i++) {
		if (step->copies[i].to != STEP_NO_LOCATION)
			drop(held, step->copies[i].to);
		if (copies[i])
			add(held, step->copies[i].to);
	}
	if (step->inspected != STEP_NO_LOCATION) {
		if (!graph_has(held, step->inspected))
			memset(held, 0, sizeof(*held));
		add(held, step->inspected);
		if (step->inspected_too != STEP_NO_LOCATION)
			add(held, step->inspected_too);
	}
}

/* --- the code's steps ---------------------------------------------------------------------- */

/* STEP_NONE: it is in no part. */
static uint32_t offset_of(const struct graph *graph, uintptr_t address)
{
	for (uint32_t i = 0; i < graph->part_count; i++)
		if (address - graph->parts[i].start < graph->parts[i].size)
			return graph->parts[i].at + (uint32_t)(address - graph->parts[i].start);
	return STEP_NONE;
}

uint32_t graph_step_at(const struct graph *graph, uintptr_t address)
{
	const uint32_t offset = offset_of(graph, address);

	return offset == STEP_NONE ? STEP_NONE : graph->step_at[offset];
}

const unsigned char *graph_code_of(const struct graph *graph, uint32_t offset)
{
	uint32_t i = graph->part_count - 1;

	while (offset < graph->parts[i].at)
		i--;
	return (const unsigned char *)graph->parts[i].start + (offset - graph->parts[i].at);
}

/* Unwind information may be wrong: no function reaches beyond its library's code. */
static bool find_function(const struct graph *graph, uintptr_t address, struct cfi_row *row)
{
	return cfi_find_row(&graph->section, address, row) == CFI_FOUND &&
	       row->function_start >= graph->start && row->function_start < row->function_end &&
	       row->function_end <= graph->end;
}

/* False: no space. */
static bool add_part(struct graph *graph, uintptr_t start, uintptr_t end)
{
	const uint32_t size = graph->size;
	struct step *steps;
	uint32_t *step_at;

	if (graph->part_count == PARTS_MAX || end - start > CODE_MAX - size)
		return false;
	graph->size += (uint32_t)(end - start);
	if ((steps = realloc(graph->steps, graph->size * sizeof(*steps))))
		graph->steps = steps;
	if ((step_at = realloc(graph->step_at, graph->size * sizeof(*step_at))))
		graph->step_at = step_at;
	if (!steps || !step_at)
		return false;
	memset(step_at + size, 0xff, (graph->size - size) * sizeof(*step_at));
	graph->parts[graph->part_count++] = (struct part){ start, graph->size - size, size };
	return true;
}

/* The row changes where the stack pointer does, and where other code begins. */
static bool changes_row(const struct step *step)
{
	return step->kills >> STEP_STACK_POINTER & 1 || !(step->flow & FLOW_NEXT);
}

static uint32_t changed_by(struct graph *graph, uintptr_t function, int deep);

/* STEP_CHANGED_BY_CALLS, too, for code that goes elsewhere. */
static uint32_t changed_in(struct graph *graph, const struct cfi_row *row, int deep)
{
	const struct step_frame frame = { STEP_STACK_POINTER, 0, 0 };
	const uintptr_t size = row->function_end - row->function_start;
	uint32_t kills = 0;
	struct step step;

	for (uintptr_t at = row->function_start, to; at < row->function_end && kills != STEP_CHANGED_BY_CALLS;
	     at += step.length) {
		if (!step_read(&step, at, row->function_end, &frame, &to))
			return STEP_CHANGED_BY_CALLS;
		if (step.calls)
			step.kills = changed_by(graph, to, deep - 1);
		kills |= step.kills & STEP_CHANGED_BY_CALLS;
		if (step.forgets || step.flow & FLOW_TABLE ||
		    (step.flow & FLOW_TARGET && to - row->function_start >= size))
			return STEP_CHANGED_BY_CALLS;
	}
	return kills;
}

/* The registers that a called function changes. gcc looks, too, and leaves the address in the others. */
static uint32_t changed_by(struct graph *graph, uintptr_t function, int deep)
{
	struct callee *known = &graph->callees[(function / 16 * 4 + (unsigned)deep) % CALLEES_KNOWN];
	uint32_t kills = STEP_CHANGED_BY_CALLS;
	struct cfi_row row;

	if (deep == 0)
		return kills;
	if (known->function == function && known->deep == deep)
		return known->kills;
	if (find_function(graph, function, &row) && row.function_start == function &&
	    row.function_end - function <= CALLEE_BYTES_MAX && graph->callee_bytes < CALLEES_MAX) {
		graph->callee_bytes += (uint32_t)(row.function_end - function);
		kills = changed_in(graph, &row, deep);
	}
	*known = (struct callee){ function, deep, kills };
	return kills;
}

/* A conditional branch to elsewhere is not a call of another function: compilers move unlikely code there. */
static void follow_branch(struct graph *graph, const struct step *step, uintptr_t target)
{
	struct cfi_row row;

	if (step->flow == (FLOW_NEXT | FLOW_TARGET) && offset_of(graph, target) == STEP_NONE &&
	    find_function(graph, target, &row))
		add_part(graph, row.function_start, row.function_end);
}

/* False: not known. */
static bool find_frame(struct graph *graph, uintptr_t address, struct step_frame *frame)
{
	struct cfi_row row = { .cfa_offset = 0 };

	if (cfi_find_row(&graph->section, address, &row) != CFI_FOUND || row.cfa_by_expression)
		return false;
	frame->base = step_register(row.cfa_register);
	frame->offset = row.cfa_offset;
	frame->above_stack = frame->base == STEP_STACK_POINTER ? frame->offset : graph->above_stack;
	return true;
}

/* How far the stack pointer is below the CFA after the prologue, which has no branch. */
static void follow_stack(struct graph *graph, const struct step *step, const struct step_frame *frame)
{
	if (frame->base == STEP_STACK_POINTER)
		graph->above_stack = frame->offset;
	if (!(step->kills >> STEP_STACK_POINTER & 1))
		return;
	if (step->lowers != 0)
		graph->above_stack += (int32_t)step->lowers;
	else if (frame->base != STEP_STACK_POINTER)
		graph->above_stack = 0;
}

static bool decode_part(struct graph *graph, const struct part *part)
{
	const uintptr_t end = part->start + part->size;
	struct step_frame frame;
	bool is_frame_known = false, is_prologue = part == graph->parts;

	for (uint32_t at = 0; at < part->size; graph->count++) {
		const uintptr_t address = part->start + at;
		struct step step;
		uintptr_t to = 0;

		if ((!is_frame_known && !find_frame(graph, address, &frame)) ||
		    !step_read(&step, address, end, &frame, &to))
			return false;
		if (step.calls)
			step.kills = changed_by(graph, to, CALLEES_DEEP);
		is_prologue = is_prologue && step.flow == FLOW_NEXT && !step.calls;
		if (is_prologue)
			follow_stack(graph, &step, &frame);
		step.at = part->at + at;
		step.target = STEP_NONE;
		if (step.flow & FLOW_TARGET) {
			step.target = (uint32_t)(to - address);
			follow_branch(graph, &step, to);
		}
		graph->steps[graph->count] = step;
		graph->step_at[step.at] = graph->count;
		is_frame_known = !changes_row(&step);
		at += step.length;
	}
	graph->steps[graph->count - 1].flow &= (uint8_t)~FLOW_NEXT;
	return true;
}

/* Until now a target is a distance: its part may have come later. */
static bool find_targets(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->count; i++) {
		struct step *step = &graph->steps[i];

		if (!(step->flow & FLOW_TARGET))
			continue;
		step->target = offset_of(graph, (uintptr_t)graph_code_of(graph, step->at) +
		                                        (uintptr_t)(intptr_t)(int32_t)step->target);
		if (step->target == STEP_NONE)
			continue;
		step->target = graph->step_at[step->target];
		if (step->target == STEP_NONE)
			return false;
		graph->is_target[step->target] = true;
	}
	return true;
}

static bool decode(struct graph *graph)
{
	/* More are added on the way. */
	for (uint32_t i = 0; i < graph->part_count; i++)
		if (!decode_part(graph, &graph->parts[i]))
			return false;
	graph->is_target = calloc(graph->count, sizeof(*graph->is_target));
	graph->in = calloc(graph->count, sizeof(*graph->in));
	graph->is_reached = calloc(graph->count, sizeof(*graph->is_reached));
	graph->is_due = calloc(graph->count, sizeof(*graph->is_due));
	graph->tables = malloc(TABLES_MAX * sizeof(*graph->tables));
	return graph->is_target && graph->in && graph->is_reached && graph->is_due && graph->tables &&
	       find_targets(graph);
}

/* False: the library is unknown. */
static bool find_code(struct graph *graph, const struct code_map *map, uintptr_t address)
{
	const enum section_result found = rules_find_section(map, address, &graph->section);
	const struct code_range *range = found == SECTION_LASTING ? code_map_find(map, address) : NULL;

	if (found > SECTION_NEWER || !graph->section.header)
		return false;
	graph->start = range ? range->start : graph->section.start;
	graph->end = range ? range->end : graph->section.end;
	return true;
}

bool graph_read(struct graph *graph, const struct code_map *map, uintptr_t start, uintptr_t end)
{
	return find_code(graph, map, start) && start >= graph->start && start < end && end <= graph->end &&
	       add_part(graph, start, end) && decode(graph);
}

void graph_free(struct graph *graph)
{
	free(graph->tables);
	free(graph->is_due);
	free(graph->is_reached);
	free(graph->in);
	free(graph->is_target);
	free(graph->step_at);
	free(graph->steps);
}

/* --- following it ----------------------------------------------------------------------------- */

static void arrive(struct graph *graph, uint32_t at, const struct held *held)
{
	struct held *in = &graph->in[at], before = *in;

	if (!graph->is_reached[at])
		*in = *held;
	for (int i = 0; i < 4; i++)
		in->words[i] &= held->words[i];
	graph->is_due[at] |= !graph->is_reached[at] || memcmp(&before, in, sizeof(before)) != 0;
	graph->has_changed |= graph->is_due[at];
	graph->is_reached[at] = true;
}

/* From the steps that are due. False: it does not terminate. */
static bool follow(struct graph *graph)
{
	uint64_t visits = 0;

	do {
		graph->has_changed = false;
		for (uint32_t i = 0; i < graph->count; i++) {
			const struct step *step = &graph->steps[i];
			struct held held = graph->in[i];

			if (!graph->is_due[i])
				continue;
			if (visits++ > (uint64_t)graph->count * VISITS_MAX)
				return false;
			graph->is_due[i] = false;
			graph_apply(step, &held);
			if (step->flow & FLOW_NEXT)
				arrive(graph, i + 1, &held);
			if (step->target != STEP_NONE)
				arrive(graph, step->target, &held);
			for (uint32_t t = 0; step->flow & FLOW_TABLE && t < graph->table_count; t++)
				for (uint32_t e = 0; graph->tables[t].jump == i && e < graph->tables[t].count;
				     e++)
					arrive(graph, graph->tables[t].targets[e], &held);
		}
	} while (graph->has_changed);
	return true;
}

bool graph_follow(struct graph *graph)
{
	memset(graph->in, 0, graph->count * sizeof(*graph->in));
	memset(graph->is_reached, 0, graph->count * sizeof(*graph->is_reached));
	memset(graph->is_due, 0, graph->count * sizeof(*graph->is_due));
	graph->is_reached[0] = graph->is_due[0] = true;
	return follow(graph);
}

bool graph_follow_rest(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->count; i++)
		if (!graph->is_reached[i] && !graph->steps[i].fills)
			graph->is_reached[i] = graph->is_due[i] = true;
	return follow(graph);
}
