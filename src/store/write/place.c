/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a process's addresses to the file's address space: each module has one
 * base in the file, whatever address the loader gave it. The first process to name
 * a module gives it its real base, if that range is free; another range otherwise.
 *
 * Runs inside the write transaction, so all processes that write to the file agree.
 */
#include "modules/module_log.h"
#include "modules/modules.h"
#include "store/read/space.h"
#include "store/write/place.h"

/* Ranges for modules whose own is taken: between where Linux puts programs and
 * where it puts libraries. */
#define SPARE_FIRST 0x200000000000
#define SPARE_END 0x400000000000
#define SPARE_ALIGN 0x10000

static struct hash module_key(const struct module *module)
{
	/* A module's description is never freed, so its address is its identity. */
	uint64_t words[] = { (uint64_t)(uintptr_t)module, module->start };

	return hash_words(words, 2);
}

static int64_t find_module(struct writer *writer, const struct module *module)
{
	sqlite3_stmt *find = writer_statement(writer, WRITE_FIND_MODULE);

	writer_bind_text(find, 1, module->build_id, SIZE_MAX);
	sqlite3_bind_int64(find, 2, (int64_t)(module->end - module->start));
	writer_bind_text(find, 3, module->path, SIZE_MAX);
	sqlite3_bind_int64(find, 4, (int64_t)module->file_size);
	sqlite3_bind_int64(find, 5, module->mtime_ns);
	return writer_number(writer, WRITE_FIND_MODULE);
}

/* The module's real base where no other module's range meets it. */
static int64_t choose_base(struct writer *writer, const struct module *module)
{
	int64_t extent = (int64_t)(module->end - module->start);
	sqlite3_stmt *meets = writer_statement(writer, WRITE_RANGE_END);
	sqlite3_stmt *spare;
	int64_t taken, base;

	sqlite3_bind_int64(meets, 1, (int64_t)module->start);
	sqlite3_bind_int64(meets, 2, (int64_t)module->end);
	taken = writer_number(writer, WRITE_RANGE_END);
	if (taken <= 0)
		return taken < 0 ? taken : (int64_t)module->start;

	spare = writer_statement(writer, WRITE_FREE_RANGE);
	sqlite3_bind_int64(spare, 1, SPARE_FIRST);
	sqlite3_bind_int64(spare, 2, SPARE_END);
	base = writer_number(writer, WRITE_FREE_RANGE);
	if (base < 0)
		return base;
	if (base < SPARE_FIRST)
		base = SPARE_FIRST;
	base = (base + SPARE_ALIGN - 1) / SPARE_ALIGN * SPARE_ALIGN;
	/* Full after some hundred thousand modules: the addresses stay unknown. */
	return base + extent <= SPARE_END ? base : 0;
}

static int64_t add_module(struct writer *writer, const struct module *module)
{
	int64_t base = choose_base(writer, module);
	sqlite3_stmt *add = writer_statement(writer, WRITE_MODULE);
	int code;

	if (base <= 0)
		return base;
	writer_bind_text(add, 1, module->build_id, SIZE_MAX);
	writer_bind_text(add, 2, module->path, SIZE_MAX);
	sqlite3_bind_int64(add, 3, (int64_t)module->file_size);
	sqlite3_bind_int64(add, 4, module->mtime_ns);
	sqlite3_bind_int64(add, 5, base);
	sqlite3_bind_int64(add, 6, (int64_t)(module->end - module->start));
	sqlite3_bind_int64(add, 7, (int64_t)(module->start - module->bias));
	code = writer_run(writer, WRITE_MODULE);
	return code ? -code : base;
}

/* Without memory for them, addresses are of no module that is known. */
static void read_modules(struct writer_other *other, uint32_t generation)
{
	if (generation <= other->generation || module_log_generation(other->log) <= other->generation)
		return;
	module_log_free(&other->modules);
	module_log_read(other->log, other->log_size, &other->modules, &other->generation);
}

static const struct module *module_of(const struct writer *writer, uint64_t address, uint32_t generation)
{
	struct writer_other *other = writer->other;

	if (!other)
		return modules_find(address, generation);
	read_modules(other, generation);
	return generation <= other->generation ? module_history_find(&other->modules, address, generation)
	                                       : NULL;
}

int place_address(struct writer *writer, uint64_t address, uint32_t generation, uint64_t *placed)
{
	const struct module *module = module_of(writer, address, generation);
	struct placed_module *known;
	struct hash key;
	int64_t base;

	/* Marked always: a module that comes later may take the range. */
	*placed = (address & (STORE_NOWHERE - 1)) | STORE_NOWHERE;
	if (!module || address < module->start || address >= module->end)
		return SQLITE_OK;
	key = module_key(module);
	known = hash_table_find(&writer->modules, key);
	if (known) {
		base = known->base;
	} else {
		base = find_module(writer, module);
		if (!base)
			base = add_module(writer, module);
		if (base < 0)
			return (int)-base;
		known = hash_table_add(&writer->modules, key);
		if (known)
			known->base = base;
	}
	if (base)
		*placed = address - module->start + (uint64_t)base;
	return SQLITE_OK;
}
