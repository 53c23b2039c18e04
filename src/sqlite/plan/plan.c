/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "sqlite/plan/mapping.h"

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->called.count; i++)
		plan_free(&plan->called.items[i]);
	vector_free(&plan->called);
	vector_free(&plan->nodes);
	vector_free(&plan->opcodes);
}

static bool is_explain(const struct opcode_library *library, const struct opcode_bytes *bytes)
{
	return !strcmp(library->names[bytes->opcode], "Explain");
}

/* --- reading ------------------------------------------------------------------------------------- */

static int32_t moved_address(const int32_t *moved, uint32_t count, int32_t address)
{
	return address > 0 && (uint32_t)address < count ? moved[address] : address;
}

static bool read_opcodes(struct plan *plan, const struct opcode_library *library, const void *bytecode,
                         uint32_t count, int *regions, int32_t *moved)
{
	const int32_t before = plan->last_id;
	int region = -1;

	plan->last_id += (int32_t)count;
	for (uint32_t i = 0; i < count; i++) {
		const struct opcode_bytes *opcode = opcode_at(library, bytecode, i);

		moved[i] = (int32_t)plan->opcodes.count;
		if (is_explain(library, opcode)) {
			struct plan_node *node = vector_add(&plan->nodes);

			if (!node)
				return false;
			/* Since 3.24 P1 is the opcode's own address, and P2 that of the parent's Explain.
			 * Before, they number SELECTs and loops: no node has a parent. */
			node->id = before + (int32_t)i;
			node->parent =
				opcode->p1 == (int32_t)i && opcode->p2 ? before + opcode->p2 : plan->root;
			node->at = (uint32_t)plan->opcodes.count;
			plan_copy_text(node->detail, sizeof(node->detail), opcode->p4);
			region = (int)plan->nodes.count - 1;
			continue;
		}
		regions[plan->opcodes.count] = region;
		if (!vector_push(
			    &plan->opcodes,
			    (struct plan_opcode){ .bytes = *opcode, .name = library->names[opcode->opcode] }))
			return false;
	}
	/* The Explain of the loop for one term of an OR is inside the loop. */
	for (size_t i = 0; i < plan->opcodes.count; i++) {
		const struct plan_node *node = regions[i] >= 0 ? &plan->nodes.items[regions[i]] : NULL;

		if (node && !strncmp(node->detail, "INDEX ", strlen("INDEX ")) &&
		    (size_t)regions[i] + 1 < plan->nodes.count && node[1].parent == node->id)
			regions[i]++;
	}
	/* The Explain of a count of all rows follows its code. */
	for (size_t i = 0; i < plan->opcodes.count; i++) {
		size_t next = i;

		if (strcmp(plan->opcodes.items[i].name, "Count") != 0)
			continue;
		while (next < plan->opcodes.count && regions[next] == regions[i])
			next++;
		if (next < plan->opcodes.count &&
		    !strncmp(plan->nodes.items[regions[next]].detail, "SCAN ", strlen("SCAN ")))
			regions[i] = regions[next];
	}
	for (size_t i = 0; i < plan->opcodes.count; i++) {
		struct plan_opcode *opcode = &plan->opcodes.items[i];

		opcode->to = moved_address(moved, count, opcode->bytes.p2);
		opcode->to_p3 = moved_address(moved, count, opcode->bytes.p3);
	}
	return plan_map(plan, regions);
}

static bool read_own(struct plan *plan, const struct opcode_library *library, const void *bytecode,
                     uint32_t count)
{
	int *regions = malloc((count + 1) * sizeof(*regions));
	int32_t *moved = malloc((count + 1) * sizeof(*moved));
	bool fine = regions && moved && read_opcodes(plan, library, bytecode, count, regions, moved);

	free(regions);
	free(moved);
	return fine;
}

static bool read_calls(struct plan *plan, const struct opcode_library *library);

/* The first opcode of a trigger's bytecode has its name. */
static void name_called(struct plan_node *node, const struct opcode_bytes *first)
{
	static const char mark[] = "-- ";

	plan_copy_text(node->detail, sizeof(node->detail), first->p4);
	if (!strncmp(node->detail, mark, strlen(mark)))
		memmove(node->detail, node->detail + strlen(mark), strlen(node->detail + strlen(mark)) + 1);
	else
		snprintf(node->detail, sizeof(node->detail), "FOREIGN KEY ACTION");
}

static bool read_called(struct plan *plan, const struct opcode_library *library, struct plan_opcode *caller)
{
	uint32_t count;
	void *bytecode = bytecode_copy_called(library, &caller->bytes, &count);
	struct plan *called = bytecode ? vector_add(&plan->called) : NULL;
	struct plan_node *root = called ? vector_add(&called->nodes) : NULL;
	bool fine = root != NULL;

	if (fine) {
		root->id = called->root = called->last_id = plan->last_id + 1;
		root->parent = plan->root;
		name_called(root, opcode_at(library, bytecode, 0));
		caller->calls = (uint32_t)plan->called.count;
		caller->node = root->id;
		fine = plan->root ||
		       (read_own(called, library, bytecode, count) && read_calls(called, library));
		plan->last_id = called->last_id;
	}
	free(bytecode);
	return fine;
}

/* Several opcodes may call the same bytecode. */
static bool read_calls(struct plan *plan, const struct opcode_library *library)
{
	for (size_t i = 0; i < plan->opcodes.count; i++) {
		struct plan_opcode *opcode = &plan->opcodes.items[i];

		if (!opcode_calls(library, &opcode->bytes))
			continue;
		for (size_t other = 0; other < i && !opcode->calls; other++)
			if (plan->opcodes.items[other].calls &&
			    plan->opcodes.items[other].bytes.p4 == opcode->bytes.p4) {
				opcode->calls = plan->opcodes.items[other].calls;
				opcode->node = plan->opcodes.items[other].node;
			}
		if (!opcode->calls && !read_called(plan, library, opcode))
			return false;
	}
	return true;
}

bool plan_read(struct plan *plan, const struct opcode_library *library, const void *explained)
{
	uint32_t count;
	const void *bytecode = opcode_bytecode(library, explained, &count);

	return read_own(plan, library, bytecode, count) && read_calls(plan, library);
}

/* --- matching ------------------------------------------------------------------------------------- */
static size_t stem_of(const char *name)
{
	size_t size = strlen(name);

	return size && name[size - 1] >= '0' && name[size - 1] <= '9' ? size - 1 : size;
}

static bool is_variable(const char *name)
{
	return !strcmp(name, "Variable");
}

/* Some opcodes become others when they run first: String8 becomes String, AggStep and AggInverse
 * AggStep1, in older libraries Function0 Function. A text in the place of a bound value has another one. */
static bool is_same_opcode(const char *read, const char *live, bool is_patterned)
{
	size_t size = stem_of(live);

	return !*live || (stem_of(read) == size && !strncmp(read, live, size)) ||
	       (!strcmp(read, "AggInverse") && !strcmp(live, "AggStep1")) ||
	       (is_patterned && is_variable(live) && !strncmp(read, "String", strlen("String")));
}

/* For a named parameter whose value the plan makes superfluous, SQLite adds an opcode and a register. */
static bool is_added(const char *read, const char *live)
{
	return read && is_variable(live) && !is_same_opcode(read, live, true);
}

/* Whether each opcode of the plan is there, in order; then it has its address. `*is_loose`: others are, too.
 */
static bool find_addresses(struct plan *plan, const struct opcode_library *library,
                           const struct opcode_bytes *opcodes, uint32_t count, bool is_patterned,
                           bool *is_loose)
{
	uint32_t at = 0;

	*is_loose = false;
	for (size_t i = 0;; i++, at++) {
		const char *read = i < plan->opcodes.count ? plan->opcodes.items[i].name : NULL;

		for (; at < count; at++)
			if (is_explain(library, &opcodes[at]) ||
			    (is_patterned && is_added(read, library->names[opcodes[at].opcode])))
				*is_loose = true;
			else
				break;
		if (!read)
			return at == count;
		if (at >= count || !is_same_opcode(read, library->names[opcodes[at].opcode], is_patterned)) {
			debug_log(DEBUG_HOOKS, "plan: opcode %u of %u is not the same: %s", at, count, read);
			return false;
		}
		plan->opcodes.items[i].address = at;
	}
}

/* `to`: the opcode of the plan at that address, if it is one. */
static bool is_same_operand(const struct plan *plan, int32_t live, int32_t read, int32_t to)
{
	return live == read || live == to ||
	       (to > 0 && (size_t)to < plan->opcodes.count &&
	        live == (int32_t)plan->opcodes.items[to].address);
}

static bool match_own(struct plan *plan, const struct opcode_library *library,
                      const struct opcode_bytes *opcodes, uint32_t count, bool is_patterned)
{
	bool is_loose; /* a build that counts for sqlite3_stmt_scanstatus() keeps Explain, which moves jumps
	                */

	if (!find_addresses(plan, library, opcodes, count, is_patterned, &is_loose))
		return false;
	for (size_t i = 0; i < plan->opcodes.count; i++) {
		struct plan_opcode *opcode = &plan->opcodes.items[i];
		const struct opcode_bytes *live = &opcodes[opcode->address];

		if ((!is_loose || !strncmp(opcode->name, "Open", strlen("Open"))) &&
		    (!is_same_operand(plan, live->p2, opcode->bytes.p2, opcode->to) ||
		     !is_same_operand(plan, live->p3, opcode->bytes.p3, opcode->to_p3))) {
			debug_log(DEBUG_HOOKS, "plan: an operand of opcode %u of %u is not the same: %s",
			          opcode->address, count, opcode->name);
			return false;
		}
	}
	for (size_t i = 0; i < plan->opcodes.count; i++)
		plan->opcodes.items[i].bytes = opcodes[plan->opcodes.items[i].address];
	return true;
}

bool plan_match(struct plan *plan, const struct opcode_library *library, const struct bytecode_copy *live,
                bool is_patterned)
{
	const struct opcode_bytes *opcodes = live->opcodes.items;
	size_t number = 0;

	if (!match_own(plan, library, opcodes, live->counts.items[0], is_patterned))
		return false;
	for (size_t i = 0; i < plan->opcodes.count; i++)
		if (plan->opcodes.items[i].calls) {
			struct plan *called = &plan->called.items[plan->opcodes.items[i].calls - 1];

			opcodes += live->counts.items[number++];
			if (number == live->counts.count ||
			    !match_own(called, library, opcodes, live->counts.items[number], is_patterned))
				return false;
		}
	return true;
}
