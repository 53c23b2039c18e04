/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/tables.h"

#include <string.h>

#include "handler/unwind/stack_copy.h"

#define MAIN_TABLE 128 /* entries at least of the table by opcodes; SQLite 3.31 has 176 opcodes */
#define WINDOW 24      /* instructions between the look at the opcode and the jump */

static struct step_place place_of(const struct graph *graph, uint32_t at)
{
	const struct part *part = graph->parts;

	while (at - part->at >= part->size)
		part++;
	return (struct step_place){ graph_code_of(graph, at), at - part->at };
}

/* The table that the step names, as the jump reads it. False: there is none. */
static bool find_table(const struct graph *graph, uint32_t jump, const struct step *naming,
                       struct step_table *table)
{
	const struct step_place named = place_of(graph, naming->at);
	const struct step_place jumps = place_of(graph, graph->steps[jump].at);

	return naming->names_table != NAMES_NOTHING && step_find_table(table, &named, &jumps);
}

/* How many entries it has. 0: it is not a table. */
static uint32_t read_table(const struct graph *graph, const struct step_table *table, uint32_t *targets)
{
	unsigned char bytes[TABLE_MAX * 8];
	const size_t width = table->width;
	size_t size = TABLE_MAX * width;
	uint32_t count = 0;

	while (size && !stack_copy_part(table->at, bytes, size))
		size -= 16;
	for (; count < size / width && count < table->most; count++) {
		const unsigned unused = 64 - 8 * (unsigned)width;
		uint64_t distance = 0;

		memcpy(&distance, bytes + count * width, width);
		if (table->is_signed)
			distance = (uint64_t)((int64_t)(distance << unused) >> unused);
		targets[count] = graph_step_at(graph, table->base + (distance << table->shift));
		if (targets[count] == STEP_NONE)
			break;
	}
	return table->most == UINT32_MAX || count == table->most ? count : 0;
}

/* Whether the step names a table, which then belongs to the jump. */
static bool add_table(struct graph *graph, uint32_t jump, const struct step *naming)
{
	struct table *table = &graph->tables[graph->table_count];
	struct step_table found;

	if (graph->table_count == TABLES_MAX || !find_table(graph, jump, naming, &found))
		return false;
	table->jump = jump;
	table->count = read_table(graph, &found, table->targets);
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

/* The step that loads the jump's entry from a table, STEP_NONE: it is not known. */
static uint32_t entry_of(const struct graph *graph, uint32_t jump)
{
	for (uint32_t i = jump; i-- > 0 && i + WINDOW > jump;)
		if (graph->steps[i].indexed != STEP_NO_LOCATION)
			return i;
	return STEP_NONE;
}

/* The table is named by the jump or by one of the last instructions before it. `indexed`: the registers of
 * which one gets its address. */
static bool find_named(struct graph *graph, uint32_t jump, uint32_t indexed)
{
	for (uint32_t i = jump; i + WINDOW > jump && i < graph->count; i--) {
		const struct step *step = &graph->steps[i];

		if ((step->names_table != NAMES_ADDRESS || step->kills & indexed) &&
		    add_table(graph, jump, step))
			return true;
		if (i < jump && step->flow & FLOW_TABLE)
			return false; /* the code before belongs to that jump */
	}
	return false;
}

/* The register of the jump's entry first; its address may have been moved, and gcc -O0 reads entries
 * otherwise. */
static void find_near_table(struct graph *graph, uint32_t jump)
{
	const uint32_t entry = entry_of(graph, jump);

	if (entry == STEP_NONE || !find_named(graph, jump, 1u << graph->steps[entry].indexed))
		find_named(graph, jump, UINT32_MAX);
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
		uint32_t other = STEP_NO_LOCATION;

		if (!(step->flow & FLOW_NEXT))
			return;
		for (int c = 0; c < 2; c++)
			if (step->copies[c].to == at->inspected)
				other = step->copies[c].from;
			else if (step->copies[c].from == at->inspected)
				other = step->copies[c].to;
		if (other != STEP_NO_LOCATION) {
			for (uint32_t between = i + 1; between < inspection; between++)
				if (graph_is_written(&graph->steps[between], other))
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

/* Whether the step may name the table of a jump that has none. */
static bool may_name(const struct graph *graph, const struct step *step)
{
	uint32_t targets[TABLE_MAX];
	struct step_table table;

	for (uint32_t i = 0; step->names_table == NAMES_ADDRESS && i < graph->count; i++)
		if (is_open(graph, i) && find_table(graph, i, step, &table) &&
		    read_table(graph, &table, targets) >= 2)
			return true;
	return false;
}

/* A jump that has got its table leads to more code. */
static void find_far_tables(struct graph *graph)
{
	bool is_more;

	do {
		is_more = false;
		for (uint32_t i = 0; i < graph->count; i++)
			is_more |= may_name(graph, &graph->steps[i]) && find_far_jumps(graph, i);
	} while (is_more);
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
