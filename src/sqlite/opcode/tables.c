/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/tables.h"

#include <string.h>

#include "handler/unwind/stack_copy.h"

#define MAIN_TABLE 128 /* entries at least of the table by opcodes; SQLite 3.31 has 176 opcodes */
#define WINDOW 24      /* instructions between the look at the opcode and the jump */

/* Entries are distances from the table (4 bytes) or addresses (8). */
static uint32_t read_table(const struct graph *graph, uintptr_t at, size_t width, uint32_t *targets)
{
	unsigned char bytes[TABLE_MAX * 8];
	size_t size = TABLE_MAX * width;
	uint32_t count = 0;

	while (size && !stack_copy_part(at, bytes, size))
		size -= 16;
	for (; count < size / width; count++) {
		uint64_t address = 0;
		int32_t distance;

		if (width == sizeof(address))
			memcpy(&address, bytes + count * width, width);
		else {
			memcpy(&distance, bytes + count * width, width);
			address = at + (uint64_t)(int64_t)distance;
		}
		targets[count] = graph_step_at(graph, address);
		if (targets[count] == STEP_NONE)
			break;
	}
	return count;
}

/* Whether the step names a table, which then belongs to the jump. */
static bool add_table(struct graph *graph, uint32_t jump, const struct step *naming)
{
	struct table *table = &graph->tables[graph->table_count];

	if (graph->table_count == TABLES_MAX || !naming->names_table)
		return false;
	table->jump = jump;
	table->count = read_table(graph, step_table(graph_code_of(graph, naming->at)), naming->names_table,
	                          table->targets);
	if (table->count < 2)
		return false;
	for (uint32_t entry = 0; entry < table->count; entry++)
		graph->is_target[table->targets[entry]] = true;
	graph->table_count++;
	return true;
}

static bool has_table(const struct graph *graph, uint32_t jump)
{
	for (uint32_t i = 0; i < graph->table_count; i++)
		if (graph->tables[i].jump == jump)
			return true;
	return false;
}

/* The table is named by the jump or by one of the last instructions before it. */
static void find_near_table(struct graph *graph, uint32_t jump)
{
	for (uint32_t i = jump; i + WINDOW > jump && i < graph->count; i--) {
		if (add_table(graph, jump, &graph->steps[i]))
			return;
		if (i < jump && graph->steps[i].flow & FLOW_TABLE)
			return; /* the code before belongs to that jump */
	}
}

/* The step that loads the jump's entry from a table, STEP_NONE: it is not known. */
static uint32_t entry_of(const struct graph *graph, uint32_t jump)
{
	for (uint32_t i = jump; i-- > 0 && i + WINDOW > jump;)
		if (graph->steps[i].indexed != STEP_NO_LOCATION)
			return i;
	return STEP_NONE;
}

/* Whether the jump may go by a table that is not known. */
static bool is_open(const struct graph *graph, uint32_t jump)
{
	return graph->steps[jump].flow & FLOW_TABLE && !has_table(graph, jump) &&
	       entry_of(graph, jump) != STEP_NONE;
}

/* Gives the table that the step names to the jumps that have its address still. */
static bool find_far_jumps(struct graph *graph, uint32_t naming)
{
	struct step *step = &graph->steps[naming];
	const uint32_t before = graph->table_count;

	step->inspected = (uint8_t)__builtin_ctz(step->kills);
	const bool is_followed = graph_follow(graph);
	step->inspected = STEP_NO_LOCATION;
	for (uint32_t i = 0; is_followed && i < graph->count; i++) {
		const uint32_t entry = is_open(graph, i) ? entry_of(graph, i) : STEP_NONE;

		if (entry != STEP_NONE && graph_has(&graph->in[entry], graph->steps[entry].indexed))
			add_table(graph, i, step);
	}
	return graph->table_count > before;
}

/* Directly before the read, the register's content may be elsewhere, too. */
static void find_second_location(struct graph *graph, uint32_t inspection)
{
	struct step *at = &graph->steps[inspection];

	for (uint32_t i = inspection; i-- > 0 && i + WINDOW > inspection && !graph->is_target[i + 1];) {
		const struct step *step = &graph->steps[i];
		uint32_t other = step->to == at->inspected     ? step->from
		                 : step->from == at->inspected ? step->to
		                                               : STEP_NO_LOCATION;

		if (!(step->flow & FLOW_NEXT))
			return;
		if (step->to != STEP_NO_LOCATION && other != STEP_NO_LOCATION) {
			for (uint32_t between = i + 1; between < inspection; between++)
				if (graph_is_written(&graph->steps[between], other) ||
				    graph->steps[between].to == other)
					return;
			at->inspected_too = (uint8_t)other;
			return;
		}
		if (graph_is_written(step, at->inspected))
			return;
	}
}

/* The opcode is read through the register that has its address. */
static bool find_inspection(struct graph *graph, uint32_t jump)
{
	for (uint32_t i = jump; i-- > 0 && i + WINDOW > jump;) {
		struct step *step = &graph->steps[i];

		if (step->reads_byte_at == STEP_NO_LOCATION)
			continue;
		step->inspected = step->reads_byte_at;
		find_second_location(graph, i);
		return true;
	}
	return false;
}

static bool has_open(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->count; i++)
		if (is_open(graph, i))
			return true;
	return false;
}

/* A jump that has got its table leads to more code. */
static void find_far_tables(struct graph *graph)
{
	uint32_t targets[TABLE_MAX];

	bool is_more = has_open(graph);

	while (is_more) {
		is_more = false;
		for (uint32_t i = 0; i < graph->count; i++) {
			const struct step *step = &graph->steps[i];

			if (step->names_table != sizeof(int32_t) ||
			    read_table(graph, step_table(graph_code_of(graph, step->at)), step->names_table,
			               targets) < 2 ||
			    !find_far_jumps(graph, i))
				continue;
			if (!has_open(graph))
				return;
			is_more = true;
		}
	}
}

bool tables_find(struct graph *graph)
{
	bool is_found = false;

	for (uint32_t i = 0; i < graph->count; i++)
		if (graph->steps[i].flow & FLOW_TABLE)
			find_near_table(graph, i);
	find_far_tables(graph);
	for (uint32_t i = 0; i < graph->table_count; i++)
		if (graph->tables[i].count >= MAIN_TABLE)
			is_found |= find_inspection(graph, graph->tables[i].jump);
	return is_found && graph->table_count < TABLES_MAX;
}
