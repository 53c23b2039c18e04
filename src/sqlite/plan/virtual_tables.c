/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/virtual_tables.h"

#include <stdlib.h>
#include <string.h>

#include "handler/unwind/stack_copy.h"
#include "sqlite/plan/bytecode_copy.h"

#define CALLED_MAX 64

/* SQLite's structures of a virtual table and of its module; none of it is
 * public, and none of it has changed since 3.7. Two ways lead from a table to the module's functions, and
 * they must meet: nothing else is taken for one. */
struct table_in_memory {
	const sqlite3 *db;
	const void *module;
	const void *table; /* a sqlite3_vtab, which is public */
};

struct module_in_memory {
	const sqlite3_module *functions;
	const char *name;
};

struct walk {
	const struct host_library *library;
	const struct opcode_library *opcodes;
	const sqlite3 *db;
	const void *called[CALLED_MAX]; /* the programs that were walked, as one may call itself */
	uint32_t called_count;
	enum bytecode_counter reason; /* why it ended early */
};

/* A program that has SQLite inside, or an extension, has its own modules in the same image. */
static bool is_own_name(const char *name)
{
	static const char *const names[] = { "bytecode",      "dbstat",     "fts3",      "fts3tokenize",
		                             "fts4",          "fts4aux",    "fts5",      "fts5vocab",
		                             "geopoly",       "json_each",  "json_tree", "jsonb_each",
		                             "jsonb_tree",    "rtree",      "rtree_i32", "sqlite_stmt",
		                             "sqlite_dbpage", "tables_used" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "pragma_", strlen("pragma_"));
}

/* The table that P4 leads to. `name`: of its module. False: it is no table. */
static bool read_table(const void *p4, struct table_in_memory *in_memory, struct module_in_memory *module,
                       char name[VIRTUAL_MODULE_MAX])
{
	sqlite3_vtab table;
	size_t size = 0;

	if (!stack_copy_part((uintptr_t)p4, in_memory, sizeof(*in_memory)) ||
	    !stack_copy_part((uintptr_t)in_memory->module, module, sizeof(*module)) ||
	    !stack_copy_part((uintptr_t)in_memory->table, &table, sizeof(table)) ||
	    module->functions != table.pModule)
		return false;
	memset(name, 0, VIRTUAL_MODULE_MAX);
	stack_copy_text(module->name, name, VIRTUAL_MODULE_MAX - 1, &size);
	return true;
}

static bool is_own(const struct walk *walk, const void *p4)
{
	struct table_in_memory in_memory;
	struct module_in_memory module;
	char name[VIRTUAL_MODULE_MAX];

	return read_table(p4, &in_memory, &module, name) && in_memory.db == walk->db &&
	       host_is_within(walk->library, module.functions) && is_own_name(name);
}

bool virtual_table_module(const void *p4, char name[VIRTUAL_MODULE_MAX])
{
	struct table_in_memory in_memory;
	struct module_in_memory module;

	return read_table(p4, &in_memory, &module, name) && is_own_name(name);
}

static bool end(struct walk *walk, enum bytecode_counter reason)
{
	walk->reason = reason;
	return false;
}

static bool walk_bytecode(struct walk *walk, const void *bytecode, uint32_t count);

static bool walk_called(struct walk *walk, const struct opcode_bytes *caller)
{
	uint32_t count;
	void *copy;
	bool is_fine;

	for (uint32_t i = 0; i < walk->called_count; i++)
		if (walk->called[i] == caller->p4)
			return true;
	if (walk->called_count == CALLED_MAX)
		return end(walk, PLAN_TOO_LARGE);
	walk->called[walk->called_count++] = caller->p4;
	copy = bytecode_copy_called(walk->opcodes, caller, &count);
	is_fine = copy ? walk_bytecode(walk, copy, count) : end(walk, PLAN_TOO_LARGE);
	free(copy);
	return is_fine;
}

static bool walk_bytecode(struct walk *walk, const void *bytecode, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct opcode_bytes *opcode = opcode_at(walk->opcodes, bytecode, i);
		const char *name = walk->opcodes->names[opcode->opcode];

		if (!*name)
			return end(walk, PLAN_LAYOUT_UNKNOWN);
		if (opcode_calls(walk->opcodes, opcode)) {
			if (!walk_called(walk, opcode))
				return false;
		} else if ((!strcmp(name, "VOpen") || !strcmp(name, "VUpdate")) &&
		           !is_own(walk, opcode->p4)) {
			return end(walk, PLAN_FOREIGN_TABLE);
		}
	}
	return true;
}

enum bytecode_counter virtual_tables_check(const struct host_library *library,
                                           const struct opcode_library *opcodes, const sqlite3 *db,
                                           const void *bytecode, uint32_t count)
{
	struct walk walk = { .library = library, .opcodes = opcodes, .db = db };

	walk_bytecode(&walk, bytecode, count);
	return walk.reason;
}
