/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/library.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/loaded_symbol.h"

bool library_object_defines(const struct dl_phdr_info *info, const char *function)
{
	return loaded_symbol_find(info, function, STT_FUNC) != NULL;
}

struct look {
	struct library_search *search;
	struct sqlite_library *library;
	size_t at;
};

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct look *look = context;
	struct sqlite_library *library = look->library;
	const ElfW(Sym) *symbol;

	(void)size;
	if (look->at == 0 && info->dlpi_subs != look->search->gone)
		*look->search = (struct library_search){ 0, info->dlpi_subs };
	if (look->at++ < look->search->seen)
		return 0;
	look->search->seen++;
	if (!info->dlpi_name || !strchr(info->dlpi_name, '/') ||
	    !(symbol = loaded_symbol_find(info, "sqlite3_step", STT_FUNC)))
		return 0;
	library->step = (const void *)(info->dlpi_addr + symbol->st_value);
	snprintf(library->path, sizeof library->path, "%s", info->dlpi_name);
	return 1;
}

bool library_find(struct library_search *search, struct sqlite_library *library)
{
	struct look look = { .search = search, .library = library };

	return dl_iterate_phdr(see_object, &look) == 1;
}
