/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "sqlite/opcode/graph.h"
#include "sqlite/opcode/tables.h"

/* The register that the opcode will be looked at through, STEP_NO_LOCATION: not on each path. */
static uint8_t approach_of(const struct graph *graph, uint32_t number)
{
	const struct step *step = &graph->steps[number];
	const uint8_t target =
		step->target != STEP_NONE ? graph->steps[step->target].approaches : STEP_NO_LOCATION;
	const uint8_t next = step->flow & FLOW_NEXT ? step[1].approaches : target;

	if (step->inspected != STEP_NO_LOCATION)
		return step->inspected;
	if (step->flow & FLOW_TABLE || (step->flow & FLOW_TARGET && target != next) || step->forgets ||
	    graph_is_written(step, next))
		return STEP_NO_LOCATION;
	return next;
}

/* Before the opcode is read, the register has the address of the next one. If every path leads to
 * that read and none writes the register, it is reported, too. A report depends only on such
 * steps, so it is final. */
static void find_approaches(struct graph *graph)
{
	do {
		graph->has_changed = false;
		for (uint32_t i = graph->count; i-- > 0;) {
			struct step *step = &graph->steps[i];

			if (step->approaches != STEP_NO_LOCATION)
				continue;
			step->approaches = approach_of(graph, i);
			graph->has_changed |= step->approaches != STEP_NO_LOCATION;
		}
	} while (graph->has_changed);
}

/* Slots first: reading a register of a frame that has called takes a walk. */
static uint8_t location_of(const struct held *held, const struct step *step)
{
	const uint64_t registers = held->words[0] & ((UINT64_C(1) << STEP_REGISTERS) - 1);

	for (int i = 0; i < 4; i++) {
		const uint64_t slots = held->words[i] ^ (i == 0 ? registers : 0);

		if (slots)
			return (uint8_t)(OPCODE_SLOT + 64 * i + __builtin_ctzll(slots) - STEP_REGISTERS);
	}
	if (registers)
		return (uint8_t)(1 + step_dwarf(63u - (unsigned)__builtin_clzll(registers)));
	return step->approaches != STEP_NO_LOCATION ? (uint8_t)(1 + step_dwarf(step->approaches)) : 0;
}

static void write_locations(const struct graph *graph, uint8_t *locations)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < graph->count && graph->steps[i].at < graph->parts[0].size; i++) {
		const struct step *step = &graph->steps[i];
		uint32_t end = i + 1 < graph->count ? graph->steps[i + 1].at : graph->size;
		struct held held = graph->in[i];

		locations[step->at] = location_of(&held, step);
		known += locations[step->at] != 0;
		/* A frame that has called is at its call's last byte. */
		graph_apply(step, &held);
		memset(locations + step->at + 1, location_of(&held, step), end - step->at - 1);
	}
	debug_log(DEBUG_HOOKS, "opcode: known at %u of %u instructions, %u tables", known, graph->count,
	          graph->table_count);
}

bool opcode_flow_find(const struct code_map *map, uintptr_t start, uintptr_t end, uint8_t *locations)
{
	struct graph *graph = map ? calloc(1, sizeof(*graph)) : NULL;
	bool is_found;

	if (!graph)
		return false;
	is_found = graph_read(graph, map, start, end) && tables_find(graph) && graph_follow(graph) &&
	           graph_follow_rest(graph);
	if (is_found) {
		find_approaches(graph);
		write_locations(graph, locations);
	}
	graph_free(graph);
	free(graph);
	return is_found;
}
