/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/library.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/loaded_symbol.h"
#include "base/loader.h"
#include "sqlite/static/stub.h"

bool library_object_defines(const struct dl_phdr_info *info, const char *function)
{
	return loaded_symbol_find(info, function, STT_FUNC) != NULL;
}

/* --- who calls it -------------------------------------------------------------------- */

/* Whether the code has a call of the function at `target`, not of an entry of the PLT. */
static bool has_call(uintptr_t code, size_t size, uintptr_t target)
{
#if defined(__x86_64__)
	int32_t distance;

	for (uintptr_t at = code; at + 1 + sizeof(distance) <= code + size; at++) {
		memcpy(&distance, (const void *)(at + 1), sizeof(distance));
		if (*(const uint8_t *)at == 0xe8 && at + 5 + (uintptr_t)(intptr_t)distance == target)
			return true;
	}
#else
	for (uintptr_t at = code; at + sizeof(uint32_t) <= code + size; at += sizeof(uint32_t)) {
		uint32_t word = *(const uint32_t *)at;

		if (word >> 26 == 0x25 && at + (uintptr_t)((int64_t)((uint64_t)word << 38) >> 36) == target)
			return true; /* bl */
	}
#endif
	return false;
}

/* The work of sqlite3_exec() is to call sqlite3_step(). */
bool library_is_bound(const struct dl_phdr_info *info)
{
	const ElfW(Sym) *exec = loaded_symbol_find(info, "sqlite3_exec", STT_FUNC);
	const ElfW(Sym) *step = loaded_symbol_find(info, "sqlite3_step", STT_FUNC);

	return !step || !loaded_function_slot(info, "sqlite3_step", 0) ||
	       (exec &&
	        has_call(info->dlpi_addr + exec->st_value, exec->st_size, info->dlpi_addr + step->st_value));
}

/* What a library of SQLite alone has. Older linkers export the other two. */
static bool is_name_of_sqlite(const char *name)
{
	return !strncmp(name, "sqlite3", strlen("sqlite3")) || !strcmp(name, "_init") ||
	       !strcmp(name, "_fini");
}

bool library_is_called_by_name(const struct dl_phdr_info *info)
{
	return loaded_symbol_find(info, "sqlite3_step", STT_FUNC) &&
	       (!library_is_bound(info) || loaded_functions_all(info, is_name_of_sqlite));
}

/* The preload has put a jump into a module's sqlite3_open() (sqlite/static/opening.h), which leads
 * out of the object. If that was refused, or there is no preload, at least the calls of other
 * modules are seen. */
static bool is_followed_inside(const struct dl_phdr_info *info)
{
	const ElfW(Sym) *open = loaded_symbol_find(info, "sqlite3_open", STT_FUNC);
	uintptr_t target = open ? stub_jump_target(info->dlpi_addr + open->st_value) : 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    target - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			return false;
	return target != 0;
}

/* --- where one is -------------------------------------------------------------------- */

struct visit {
	struct library_search *search;
	struct sqlite_library *library;
	size_t at;
};

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct visit *visit = context;
	struct sqlite_library *library = visit->library;
	const ElfW(Sym) *symbol;

	(void)size;
	if (visit->at == 0 && info->dlpi_subs != visit->search->gone)
		*visit->search = (struct library_search){ 0, info->dlpi_subs };
	if (visit->at++ < visit->search->seen)
		return 0;
	visit->search->seen++;
	if (!info->dlpi_name || !strchr(info->dlpi_name, '/') ||
	    !(symbol = loaded_symbol_find(info, "sqlite3_step", STT_FUNC)) || is_followed_inside(info))
		return 0;
	library->step = (const void *)(info->dlpi_addr + symbol->st_value);
	snprintf(library->path, sizeof(library->path), "%s", info->dlpi_name);
	return 1;
}

bool library_next(struct library_search *search, struct sqlite_library *library)
{
	struct visit visit = { .search = search, .library = library };

	return loader_each(see_object, &visit) == 1;
}
