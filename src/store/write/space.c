/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a process's addresses to the file's address space. Each module has one base in the file, wherever the
 * loader mapped it. The first process that names a module gives it its real base if that range is free, else
 * another range.
 *
 * Runs inside the write transaction, so all processes that write to the file agree.
 */
#include "store/write/space.h"

#include "modules/module_log.h"
#include "modules/modules.h"
#include "store/read/space.h"
#include "store/write/writer.h"

/* Ranges for modules whose own range is taken: between the addresses of programs and of libraries on
 * Linux. */
#define SPARE_FIRST 0x200000000000
#define SPARE_END 0x400000000000
#define SPARE_ALIGN 0x10000

struct placed_module {
	struct hash key;
	int64_t base; /* 0: none */
};

const struct module_writer module_writer_new = {
	.known = HASH_TABLE_OF(struct placed_module, 1 << 14),
	.sql = {
		.find.sql = "SELECT base FROM modules WHERE build_id = :build_id AND extent = :extent AND"
		            " (:build_id != '' OR (path = :path AND file_size = :file_size AND mtime_ns = :mtime_ns))",
		.add.sql = "INSERT INTO modules (build_id, path, file_size, mtime_ns, base, extent, elf_start) VALUES"
		           " (:build_id, :path, :file_size, :mtime_ns, :base, :extent, :elf_start)",
		.range_end.sql = "SELECT max(base + extent) FROM modules WHERE base < :end AND base + extent > :start",
	},
};

static struct hash module_key(const struct module *module)
{
	/* A module's description is never freed, so its address is its identity. */
	uint64_t words[] = { (uint64_t)(uintptr_t)module, module->start };

	return hash_words(words, 2);
}

static int64_t find_module(struct writer *writer, const struct module *module)
{
	struct prepared *find = writer_bind(writer, &writer->modules->sql.find);

	bind_text(find, "build_id", module->build_id, SIZE_MAX);
	bind_number(find, "extent", (int64_t)(module->end - module->start));
	bind_text(find, "path", module->path, SIZE_MAX);
	bind_number(find, "file_size", (int64_t)module->file_size);
	bind_number(find, "mtime_ns", module->mtime_ns);
	return writer_number(writer, find);
}

/* The end of the last module that overlaps the range; 0: none; else minus SQLite's code. */
static int64_t find_range_end(struct writer *writer, int64_t start, int64_t end)
{
	struct prepared *find = writer_bind(writer, &writer->modules->sql.range_end);

	bind_number(find, "end", end);
	bind_number(find, "start", start);
	return writer_number(writer, find);
}

/* The module's real base, if no other module overlaps its range. */
static int64_t choose_base(struct writer *writer, const struct module *module)
{
	int64_t extent = (int64_t)(module->end - module->start);
	int64_t taken = find_range_end(writer, (int64_t)module->start, (int64_t)module->end), base;

	if (taken <= 0)
		return taken < 0 ? taken : (int64_t)module->start;
	base = find_range_end(writer, SPARE_FIRST, SPARE_END);
	if (base < 0)
		return base;
	if (base < SPARE_FIRST)
		base = SPARE_FIRST;
	base = (base + SPARE_ALIGN - 1) / SPARE_ALIGN * SPARE_ALIGN;
	/* Full after some hundred thousand modules; later addresses remain unknown. */
	return base + extent <= SPARE_END ? base : 0;
}

static int64_t add_module(struct writer *writer, const struct module *module)
{
	int64_t base = choose_base(writer, module);
	struct prepared *add;
	int code;

	if (base <= 0)
		return base;
	add = writer_bind(writer, &writer->modules->sql.add);
	bind_text(add, "build_id", module->build_id, SIZE_MAX);
	bind_text(add, "path", module->path, SIZE_MAX);
	bind_number(add, "file_size", (int64_t)module->file_size);
	bind_number(add, "mtime_ns", module->mtime_ns);
	bind_number(add, "base", base);
	bind_number(add, "extent", (int64_t)(module->end - module->start));
	bind_number(add, "elf_start", (int64_t)(module->start - module->bias));
	code = writer_run(writer, add);
	return code ? -code : base;
}

/* Without memory for the modules, addresses belong to no known module. Data that was read before now has
 * another description. */
static void read_modules(struct writer *writer, uint32_t generation)
{
	struct writer_other *other = writer->other;

	if (generation <= other->generation || module_log_generation(other->log) <= other->generation)
		return;
	hash_table_clear(&writer->modules->known);
	module_log_free(&other->modules);
	module_log_read(other->log, other->log_size, &other->modules, &other->generation);
}

static const struct module *module_of(struct writer *writer, uint64_t address, uint32_t generation)
{
	struct writer_other *other = writer->other;

	if (!other)
		return modules_find(address, generation);
	read_modules(writer, generation);
	return generation <= other->generation ? module_history_find(&other->modules, address, generation)
	                                       : NULL;
}

int space_map_address(struct writer *writer, uint64_t address, uint32_t generation, uint64_t *placed)
{
	const struct module *module = module_of(writer, address, generation);
	struct placed_module *known;
	struct hash key;
	int64_t base;

	/* Always marked, because a later module may take the range. */
	*placed = (address & (STORE_NOWHERE - 1)) | STORE_NOWHERE;
	if (!module || address < module->start || address >= module->end)
		return SQLITE_OK;
	key = module_key(module);
	known = hash_table_find(&writer->modules->known, key);
	if (known) {
		base = known->base;
	} else {
		base = find_module(writer, module);
		if (!base)
			base = add_module(writer, module);
		if (base < 0)
			return (int)-base;
		known = hash_table_add(&writer->modules->known, key);
		if (known)
			known->base = base;
	}
	if (base)
		*placed = address - module->start + (uint64_t)base;
	return SQLITE_OK;
}
