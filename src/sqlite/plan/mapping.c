/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "handler/unwind/stack_copy.h"
#include "sqlite/plan/virtual_tables.h"

#define NO_NODE -1
#define SUBROUTINES_MAX 32

/* The effect of an opcode on cursors and on the order of execution, as far as plans need it. */
enum role {
	ROLE_NONE = 0,
	ROLE_USES = 1,      /* cursor P1 */
	ROLE_MOVES = 2,     /* cursor P1, for the first time in the code of its node */
	ROLE_REPEATS = 4,   /* the loop over cursor P1 */
	ROLE_STORES = 8,    /* into cursor P1 */
	ROLE_JUMPS = 16,    /* to P2 */
	ROLE_OPENS = 32,    /* cursor P1, for an index made by the statement */
	ROLE_WRITES = 64,   /* opens cursor P1 for writing */
	ROLE_GATHERS = 128, /* opens cursor P1, for a table that the statement fills */
	ROLE_CHECKS = 256,  /* looks, if cursor P1 is written to, for the row that will be there */
};

static const struct {
	unsigned role;
	const char *opcodes;
} roles[] = {
	{ ROLE_USES | ROLE_MOVES | ROLE_JUMPS,
	  "Rewind Last SeekGE SeekGT SeekLE SeekLT SeekRowid Found NotFound VFilter SorterSort Sort" },
	{ ROLE_USES | ROLE_MOVES | ROLE_JUMPS | ROLE_CHECKS, "NotExists" },
	{ ROLE_USES | ROLE_JUMPS | ROLE_CHECKS, "NoConflict" },
	{ ROLE_USES | ROLE_MOVES, "Count" },
	{ ROLE_USES | ROLE_REPEATS | ROLE_JUMPS, "Next Prev VNext SorterNext" },
	{ ROLE_USES, "DeferredSeek Seek FinishSeek SeekHit IdxRowid Column Offset Rowid VColumn RowData "
	             "NullRow SorterData" },
	{ ROLE_JUMPS, "SeekScan Once Init" },
	{ ROLE_USES | ROLE_JUMPS, "IdxGE IdxGT IdxLE IdxLT SorterCompare" },
	{ ROLE_USES | ROLE_STORES, "SorterInsert IdxInsert Insert IdxDelete Delete" },
	{ ROLE_OPENS, "OpenAutoindex" },
	{ ROLE_GATHERS, "OpenEphemeral" },
	{ ROLE_WRITES, "OpenWrite" },
};

/* ROLE_NONE: the plan does not follow the opcode. */
static unsigned role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (text_has_word(roles[i].opcodes, name))
			return roles[i].role;
	return ROLE_NONE;
}

static bool is(const struct plan_opcode *opcode, const char *name)
{
	return !strcmp(opcode->name, name);
}

static bool begins(const struct plan_node *node, const char *words)
{
	return !strncmp(node->detail, words, strlen(words));
}

void plan_copy_text(char *to, size_t room, const char *from)
{
	size_t size = 0;

	if (from)
		stack_copy_text(from, to, room - 1, &size);
	to[size] = '\0';
	to[text_cut(to, size)] = '\0';
	for (; *to; to++)
		if (*to == '\n' || *to == '\t')
			*to = ' ';
}

/* --- what is modified ---------------------------------------------------------------------------- */

/* A node that is made here; its number, NO_NODE: no memory. */
static int add_node(struct plan *plan, const char *detail)
{
	struct plan_node *node;

	for (size_t i = 0; i < plan->nodes.count; i++)
		if (!strcmp(plan->nodes.items[i].detail, detail))
			return (int)i;
	node = vector_add(&plan->nodes);
	if (!node)
		return NO_NODE;
	node->id = ++plan->last_id;
	node->parent = plan->root;
	node->is_made = true;
	snprintf(node->detail, sizeof(node->detail), "%s", detail);
	return (int)plan->nodes.count - 1;
}

static int add_modification(struct plan *plan, bool is_of_index, const char *table)
{
	const char *what = is_of_index ? "INDEXES" : "TABLE", *of = is_of_index ? " OF " : " ";
	char detail[300];

	snprintf(detail, sizeof(detail), "MODIFY %s%s%s", what, table[0] ? of : "", table);
	return add_node(plan, detail);
}

/* Rows of a virtual table are changed by its module, which has statements of its own for that. */
static int add_virtual_modification(struct plan *plan, const struct plan_opcode *opcode)
{
	char name[VIRTUAL_MODULE_MAX], detail[64];

	if (!virtual_table_module(opcode->bytes.p4, name))
		return NO_NODE;
	snprintf(detail, sizeof(detail), "MODIFY VIRTUAL TABLE (%s)", name);
	return add_node(plan, detail);
}

/* --- the nodes of the opcodes ------------------------------------------------------------------ */

struct mapping {
	struct plan *plan;
	const int *regions; /* the node whose Explain came last before each opcode */
	int *cursors;       /* the node of each cursor */
	bool *is_written;   /* the cursors that are */
	bool *gathers;      /* those of tables that the statement fills */
	int cursor_count;
	int32_t *parents; /* of the nodes, as EXPLAIN QUERY PLAN has them; so many */
	size_t parent_count;
	int *open; /* the nodes whose code one is in, the innermost last */
	int open_count;
	struct {
		int32_t return_to; /* the register */
		int open_count;
	} subroutines[SUBROUTINES_MAX]; /* the enclosing one, whose code contains it */
	int subroutine_count;
	char table[256]; /* that is modified */
};

static bool is_temporary(const struct plan *plan, int node)
{
	return node >= 0 && begins(&plan->nodes.items[node], "USE TEMP B-TREE");
}

/* Whether the opcodes of other nodes fill its table. */
static bool is_filled(const struct plan *plan, int node)
{
	return is_temporary(plan, node) ||
	       (node >= 0 && strstr(plan->nodes.items[node].detail, " USING TEMP B-TREE"));
}

static bool is_loop(const struct plan_node *node)
{
	return begins(node, "SCAN") || begins(node, "SEARCH");
}

static bool is_open(const struct mapping *mapping, int number)
{
	for (int i = 0; i < mapping->open_count; i++)
		if (mapping->open[i] == number)
			return true;
	return false;
}

static int innermost(const struct mapping *mapping)
{
	return mapping->open_count ? mapping->open[mapping->open_count - 1] : NO_NODE;
}

/* The number of the node that the plan nests another one in, NO_NODE: none. */
static int parent_of(const struct mapping *mapping, int number)
{
	for (size_t i = 0; mapping->parents[number] && i < mapping->parent_count; i++)
		if (mapping->plan->nodes.items[i].id == mapping->parents[number] && (int)i != number)
			return (int)i;
	return NO_NODE;
}

/* EXPLAIN QUERY PLAN lists the loops of a join side by side; each runs inside the previous one.
 * The code of a node without opcodes of its own begins with that of its children. */
static void open_node(struct mapping *mapping, int number)
{
	struct plan_node *node = &mapping->plan->nodes.items[number];
	const int32_t parent = node->parent;
	const int container = parent_of(mapping, number);

	/* The code of the loop that looks the values up still follows. */
	if (begins(node, "USING "))
		return;
	if (container != NO_NODE && container < number && !is_open(mapping, container) &&
	    !is_loop(&mapping->plan->nodes.items[container]))
		open_node(mapping, container);
	for (int i = mapping->open_count; is_loop(node) && i-- > 0;) {
		const struct plan_node *around = &mapping->plan->nodes.items[mapping->open[i]];

		if (is_loop(around) && mapping->parents[mapping->open[i]] == parent) {
			node->parent = around->id;
			break;
		}
	}
	mapping->open[mapping->open_count++] = number;
}

/* A loop for one term of an OR. All of them move the same cursor. */
static bool is_term(const struct mapping *mapping, int node)
{
	int container = (size_t)node < mapping->parent_count ? parent_of(mapping, node) : NO_NODE;

	return container != NO_NODE && begins(&mapping->plan->nodes.items[container], "INDEX ");
}

/* The loop over the node's rows ends, and so do the inner loops. The work on its rows continues. */
static void close_loop(struct mapping *mapping, int node)
{
	int at = mapping->open_count, kept;

	while (at > 0 && mapping->open[at - 1] != node)
		at--;
	if (at == 0)
		return;
	kept = at - 1;
	for (int i = at; i < mapping->open_count; i++)
		if (is_temporary(mapping->plan, mapping->open[i]))
			mapping->open[kept++] = mapping->open[i];
	/* One term of an OR; the work for its rows follows the last one. */
	while (kept > 0 && begins(&mapping->plan->nodes.items[mapping->open[kept - 1]], "INDEX "))
		kept--;
	mapping->open_count = kept;
}

static void begin_subroutine(struct mapping *mapping, int32_t return_to)
{
	if (mapping->subroutine_count == SUBROUTINES_MAX)
		return;
	mapping->subroutines[mapping->subroutine_count].return_to = return_to;
	mapping->subroutines[mapping->subroutine_count++].open_count = mapping->open_count;
}

/* After it comes the enclosing code, or none of the earlier ones. */
static void end_subroutine(struct mapping *mapping, int32_t return_to)
{
	for (int i = mapping->subroutine_count; i-- > 0;)
		if (mapping->subroutines[i].return_to == return_to) {
			mapping->subroutine_count = i;
			if (mapping->subroutines[i].open_count < mapping->open_count)
				mapping->open_count = mapping->subroutines[i].open_count;
			return;
		}
	mapping->open_count = 0;
}

/* A recursive query's first rows exist, and the loop over its queue begins, which belongs neither
 * to the SETUP nor to the RECURSIVE STEP. */
static void end_setup(struct mapping *mapping)
{
	const struct plan *plan = mapping->plan;

	for (int i = mapping->open_count; i-- > 0;)
		if (begins(&plan->nodes.items[mapping->open[i]], "SETUP")) {
			mapping->open_count = i;
			return;
		}
}

static bool has_cursor(const struct mapping *mapping, int cursor)
{
	return cursor >= 0 && cursor < mapping->cursor_count;
}

static int *cursor_node(struct mapping *mapping, const struct plan_opcode *opcode)
{
	static int none = NO_NODE;
	int cursor = opcode->bytes.p1;

	return has_cursor(mapping, cursor) ? &mapping->cursors[cursor] : &none;
}

static bool mapping_gathers(const struct mapping *mapping, int cursor)
{
	return has_cursor(mapping, cursor) && mapping->gathers[cursor];
}

static bool mapping_writes(const struct mapping *mapping, int cursor)
{
	return has_cursor(mapping, cursor) && mapping->is_written[cursor];
}

/* The end of the code that makes an index for the statement, of which this is the first opcode; 0:
 * it is not. `*cursor`: the index. */
static uint32_t end_of_autoindex(const struct plan *plan, uint32_t at, int *cursor)
{
	const struct plan_opcode *once = &plan->opcodes.items[at];
	uint32_t end = (uint32_t)once->to;

	if (!is(once, "Once") || end > plan->opcodes.count)
		return 0;
	for (uint32_t i = at + 1; i < end && i < at + 4; i++)
		if (role_of(plan->opcodes.items[i].name) & ROLE_OPENS) {
			*cursor = plan->opcodes.items[i].bytes.p1;
			return end;
		}
	return 0;
}

/* A trigger has several statements. Before the code of each except the first, or after that of the
 * previous one. */
static bool is_between(const struct plan_opcode *opcode)
{
	return is(opcode, "Trace") || is(opcode, "ResetCount");
}

/* The name of the table that the statement from an opcode on modifies; begins with the table. */
static void find_table(struct mapping *mapping, size_t from)
{
	const struct plan *plan = mapping->plan;
	const char *name = NULL;

	mapping->table[0] = '\0';
	for (size_t i = from; i < plan->opcodes.count && !mapping->table[0]; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];

		if (i > from && is_between(opcode))
			return;
		if ((is(opcode, "Insert") || is(opcode, "Delete")) && opcode->bytes.p4 &&
		    mapping_writes(mapping, opcode->bytes.p1) &&
		    stack_copy_part((uintptr_t)opcode->bytes.p4, &name, sizeof(name)))
			plan_copy_text(mapping->table, sizeof(mapping->table), name);
	}
}

static int node_of(struct mapping *mapping, const struct plan_opcode *opcode, unsigned role, int region)
{
	int own = role & ROLE_USES ? *cursor_node(mapping, opcode) : NO_NODE;

	if (role & (ROLE_STORES | ROLE_CHECKS) && mapping_writes(mapping, opcode->bytes.p1))
		return add_modification(mapping->plan,
		                        !strncmp(opcode->name, "Idx", 3) || is(opcode, "NoConflict"),
		                        mapping->table);
	if (role & ROLE_STORES)
		return is_filled(mapping->plan, own) ? own : region;
	if (is(opcode, "VUpdate") && (own = add_virtual_modification(mapping->plan, opcode)) != NO_NODE)
		return own;
	return own != NO_NODE ? own : region;
}

/* In the order of the code: a node's cursors are moved in its own code. */
static void map_opcodes(struct mapping *mapping, int *nodes)
{
	const struct plan *plan = mapping->plan;
	uint32_t count = (uint32_t)plan->opcodes.count, autoindex_end = 0;
	uint32_t start =
		count && is(&plan->opcodes.items[0], "Init") ? (uint32_t)plan->opcodes.items[0].to : 0;
	int autoindex = NO_NODE, last = NO_NODE;

	for (uint32_t i = 0; i < count; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];
		unsigned role = role_of(opcode->name);
		uint32_t end = end_of_autoindex(plan, i, &autoindex);

		if (mapping->regions[i] != last && mapping->regions[i] != NO_NODE)
			open_node(mapping, mapping->regions[i]);
		last = mapping->regions[i];
		if (is_between(opcode))
			mapping->open_count = mapping->subroutine_count = 0;
		int region = innermost(mapping);

		if (start > 1 &&
		    i >= start) /* what Init jumps to, once; in a trigger it jumps nowhere else */
			region = NO_NODE;
		if (end)
			autoindex_end = end;
		nodes[i] = i < autoindex_end ? -2 - autoindex : region;
		if (i < autoindex_end)
			continue;
		if (role & ROLE_WRITES && has_cursor(mapping, opcode->bytes.p1))
			mapping->is_written[opcode->bytes.p1] = true;
		if (role & ROLE_GATHERS && has_cursor(mapping, opcode->bytes.p1))
			mapping->gathers[opcode->bytes.p1] = true;
		if (role & ROLE_MOVES && mapping_gathers(mapping, opcode->bytes.p1)) {
			end_setup(mapping);
			nodes[i] = region = innermost(mapping);
		}
		if (role & ROLE_MOVES && region != NO_NODE &&
		    (*cursor_node(mapping, opcode) == NO_NODE || is_term(mapping, region)))
			*cursor_node(mapping, opcode) = region;
		if ((is(opcode, "DeferredSeek") || is(opcode, "Seek")) &&
		    has_cursor(mapping, opcode->bytes.p3))
			mapping->cursors[opcode->bytes.p3] = *cursor_node(mapping, opcode);
		if (role & ROLE_REPEATS)
			close_loop(mapping, *cursor_node(mapping, opcode));
		if (is(opcode, "BeginSubrtn"))
			begin_subroutine(mapping, opcode->bytes.p2);
		if (is(opcode, "EndCoroutine") || is(opcode, "Return"))
			end_subroutine(mapping, opcode->bytes.p1);
	}
}

/* Values that were already seen are kept in a table that is searched and filled in the loop, while
 * the node's Explain follows the loop. Nothing else moves such a table's cursor. */
static void find_distinct(struct mapping *mapping)
{
	struct plan *plan = mapping->plan;

	for (size_t i = 0; i + 1 < plan->opcodes.count; i++) {
		const struct plan_opcode *found = &plan->opcodes.items[i];
		int *node = cursor_node(mapping, found);

		if (!is(found, "Found") || !mapping_gathers(mapping, found->bytes.p1))
			continue;
		*node = NO_NODE;
		for (size_t at = 0; at < plan->nodes.count && *node == NO_NODE; at++)
			if (is_temporary(plan, (int)at) && strstr(plan->nodes.items[at].detail, "DISTINCT") &&
			    plan->nodes.items[at].at >= i)
				*node = (int)at;
		for (size_t at = plan->nodes.count; at-- > 0 && *node == NO_NODE;)
			if (is_temporary(plan, (int)at) && strstr(plan->nodes.items[at].detail, "DISTINCT"))
				*node = (int)at;
	}
}

/* With a LIMIT, rows are sorted in a table that is filled and searched in the loop, while the
 * node's Explain follows it, before the table is read. */
static void find_sorts(struct mapping *mapping)
{
	const struct plan *plan = mapping->plan;

	for (size_t i = 0; i < plan->opcodes.count; i++)
		if (is(&plan->opcodes.items[i], "Sort") && is_temporary(plan, mapping->regions[i]) &&
		    mapping_gathers(mapping, plan->opcodes.items[i].bytes.p1))
			*cursor_node(mapping, &plan->opcodes.items[i]) = mapping->regions[i];
}

static void assign(struct mapping *mapping, int *nodes)
{
	struct plan *plan = mapping->plan;

	for (size_t i = 0; i < plan->opcodes.count; i++) {
		struct plan_opcode *opcode = &plan->opcodes.items[i];
		int cursor = -2 - nodes[i];

		if (i == 0 || is_between(opcode))
			find_table(mapping, i);
		if (nodes[i] <= -2)
			nodes[i] = cursor < mapping->cursor_count ? mapping->cursors[cursor] : NO_NODE;
		else
			nodes[i] = node_of(mapping, opcode, role_of(opcode->name), nodes[i]);
	}
	/* A record is made for the opcode that stores it. */
	for (size_t i = plan->opcodes.count; i-- > 0;) {
		if (is(&plan->opcodes.items[i], "MakeRecord"))
			for (size_t next = i + 1; next < plan->opcodes.count && next < i + 3; next++)
				if (role_of(plan->opcodes.items[next].name) & (ROLE_STORES | ROLE_CHECKS)) {
					nodes[i] = nodes[next];
					break;
				}
		plan->opcodes.items[i].node =
			nodes[i] == NO_NODE ? plan->root : plan->nodes.items[nodes[i]].id;
	}
}

bool plan_map(struct plan *plan, const int *regions)
{
	struct mapping mapping = { .plan = plan, .regions = regions };
	size_t count = plan->opcodes.count;
	int *nodes;

	for (size_t i = 0; i < count; i++)
		if (plan->opcodes.items[i].bytes.p1 >= mapping.cursor_count &&
		    role_of(plan->opcodes.items[i].name) & ~(unsigned)ROLE_JUMPS)
			mapping.cursor_count = plan->opcodes.items[i].bytes.p1 + 1;
	if (mapping.cursor_count > 100000)
		mapping.cursor_count = 100000;
	mapping.cursors = malloc(((size_t)mapping.cursor_count + 1) * sizeof(*mapping.cursors));
	mapping.is_written = calloc((size_t)mapping.cursor_count + 1, sizeof(*mapping.is_written));
	mapping.gathers = calloc((size_t)mapping.cursor_count + 1, sizeof(*mapping.gathers));
	mapping.open = malloc((count + plan->nodes.count + 1) * sizeof(*mapping.open));
	nodes = malloc((count + 1) * sizeof(*nodes));
	mapping.parents = malloc((plan->nodes.count + 1) * sizeof(*mapping.parents));
	mapping.parent_count = mapping.parents ? plan->nodes.count : 0;
	for (size_t i = 0; i < mapping.parent_count; i++)
		mapping.parents[i] = plan->nodes.items[i].parent;
	bool fine = mapping.parents && mapping.cursors && mapping.is_written && mapping.gathers &&
	            mapping.open && nodes;
	if (fine) {
		for (int i = 0; i < mapping.cursor_count; i++)
			mapping.cursors[i] = NO_NODE;
		map_opcodes(&mapping, nodes);
		find_distinct(&mapping);
		find_sorts(&mapping);
		assign(&mapping, nodes);
	}
	free(mapping.parents);
	free(mapping.cursors);
	free(mapping.is_written);
	free(mapping.gathers);
	free(mapping.open);
	free(nodes);
	return fine;
}
