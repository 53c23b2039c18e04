/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/virtual_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/unwind/stack_copy.h"
#include "sqlite/library/module_list.h"
#include "sqlite/plan/bytecode_copy.h"
#include "sqlite/plan/mapping.h"
#include "sqlite/plan/module_methods.h"

#define CALLED_MAX 64

/* SQLite's structure of a virtual table; not public, and not changed since 3.7. Two ways lead from a table to
 * the module's functions, and they must meet: nothing else is taken for one. */
struct table_in_memory {
	const sqlite3 *db;
	const void *module; /* a struct registered_module */
	const void *table;  /* a sqlite3_vtab, which is public */
};

struct walk {
	const struct session *session;
	const struct opcode_library *opcodes;
	const void *called[CALLED_MAX]; /* the programs that were walked, as one may call itself */
	uint32_t called_count;
	bool needs_record, needs_calls;
	enum bytecode_counter reason; /* why it ended early */
};

/* The table that P4 leads to. `name`: of its module. False: it is no table. */
static bool read_table(const void *p4, struct table_in_memory *in_memory, struct registered_module *module,
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

static bool is_own(const struct host_library *library, const struct registered_module *module,
                   const char *name)
{
	return host_is_within(library, module->functions) && module_is_own_name(name);
}

static enum bytecode_counter check_table(struct walk *walk, const void *p4, const char *opcode)
{
	struct table_in_memory in_memory;
	struct registered_module module;
	char name[VIRTUAL_MODULE_MAX];

	if (!read_table(p4, &in_memory, &module, name) || in_memory.db != walk->session->db)
		return PLAN_FOREIGN_MODULE;
	if (is_own(walk->session->library, &module, name))
		return BYTECODE_READ;
	if (!module_is_followed(module.functions)) {
		module_methods_look_again();
		/* Without a look, the connection has prepared nothing since queryprof was attached. */
		return walk->session->modules.first ? PLAN_FOREIGN_MODULE : PLAN_FOREIGN_TABLE;
	}
	walk->needs_record = true;
	/* SQLite asks nothing of a table that it only writes to. */
	walk->needs_calls |= !strcmp(opcode, "VOpen");
	return BYTECODE_READ;
}

bool virtual_table_module(const void *p4, char name[VIRTUAL_MODULE_MAX])
{
	struct table_in_memory in_memory;
	struct registered_module module;

	return read_table(p4, &in_memory, &module, name);
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
		} else if (!strcmp(name, "VOpen") || !strcmp(name, "VUpdate")) {
			const enum bytecode_counter reason = check_table(walk, opcode->p4, name);

			if (reason)
				return end(walk, reason);
		}
	}
	return true;
}

enum bytecode_counter virtual_tables_check(const struct session *session,
                                           const struct opcode_library *opcodes, const void *bytecode,
                                           uint32_t count, bool *needs_record, bool *needs_calls)
{
	struct walk walk = { .session = session, .opcodes = opcodes };

	walk_bytecode(&walk, bytecode, count);
	*needs_record = walk.needs_record;
	*needs_calls = walk.needs_calls;
	return walk.reason;
}

/* --- names -------------------------------------------------------------------------------------- */

static void name_module(struct plan *plan, const struct host_library *library,
                        const struct plan_opcode *filter, const struct plan_opcode *open)
{
	struct table_in_memory in_memory;
	struct registered_module module;
	char name[VIRTUAL_MODULE_MAX], text[VIRTUAL_MODULE_MAX + sizeof("module ")];

	if (!read_table(open->bytes.p4, &in_memory, &module, name) || is_own(library, &module, name))
		return;
	snprintf(text, sizeof(text), "module %s", name);
	for (size_t i = 0; i < plan->nodes.count; i++)
		if (plan->nodes.items[i].id == filter->node)
			plan_copy_text(plan->nodes.items[i].compared, sizeof(plan->nodes.items[i].compared),
			               text);
}

void virtual_modules_name(struct plan *plan, const struct host_library *library)
{
	for (size_t i = 0; i < plan->opcodes.count; i++)
		for (size_t j = 0; !strcmp(plan->opcodes.items[i].name, "VFilter") && j < i; j++)
			if (!strcmp(plan->opcodes.items[j].name, "VOpen") &&
			    plan->opcodes.items[j].bytes.p1 == plan->opcodes.items[i].bytes.p1)
				name_module(plan, library, &plan->opcodes.items[i], &plan->opcodes.items[j]);
	for (size_t i = 0; i < plan->called.count; i++)
		virtual_modules_name(&plan->called.items[i], library);
}

/* --- what they are asked for ------------------------------------------------------------------- */

#define FILTER_TEXT_MAX 2000

void virtual_filter_hash(struct hash *hash, const struct opcode_library *opcodes, const void *bytecode,
                         uint32_t at)
{
	if (strcmp(opcodes->names[opcode_at(opcodes, bytecode, at)->opcode], "VFilter") != 0)
		return;
	/* Integer for the number, Integer for the number of arguments, VFilter. */
	hash_word(hash, at >= 2 ? (uint32_t)opcode_at(opcodes, bytecode, at - 2)->p1 : 0);
}

static void hash_text(struct hash *hash, const struct opcode_library *opcodes,
                      const struct opcode_bytes *filter)
{
	char text[FILTER_TEXT_MAX];
	size_t size = 0;

	if (!strcmp(opcodes->names[filter->opcode], "VFilter") && filter->p4 &&
	    stack_copy_text(filter->p4, text, sizeof(text), &size))
		hash_word(hash, hash_bytes(text, size).first);
}

static void hash_filters(struct hash *hash, const struct opcode_library *opcodes, const void *bytecode,
                         uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		virtual_filter_hash(hash, opcodes, bytecode, i);
		hash_text(hash, opcodes, opcode_at(opcodes, bytecode, i));
	}
}

struct hash virtual_filters_hash(const struct opcode_library *opcodes, const void *bytecode, uint32_t count)
{
	struct hash hash = hash_begin(0);

	hash_filters(&hash, opcodes, bytecode, count);
	for (uint32_t i = 0, size; i < count; i++)
		if (opcode_calls(opcodes, opcode_at(opcodes, bytecode, i))) {
			void *called = bytecode_copy_called(opcodes, opcode_at(opcodes, bytecode, i), &size);

			if (called)
				hash_filters(&hash, opcodes, called, size);
			free(called);
		}
	return hash_end(hash);
}
