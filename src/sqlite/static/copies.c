/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/copies.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/loader.h"
#include "sqlite/library/library.h"

/* The program's own name is "". */
static bool is_program(const struct dl_phdr_info *info)
{
	return !info->dlpi_name || !*info->dlpi_name;
}

static void copy_path(char path[PATH_MAX], const struct dl_phdr_info *info)
{
	ssize_t size = 0;

	if (is_program(info))
		size = readlink("/proc/self/exe", path, PATH_MAX - 1);
	if (size > 0)
		path[size] = '\0';
	else
		snprintf(path, PATH_MAX, "%s", info->dlpi_name ? info->dlpi_name : "");
}

/* A shared library, and this one, which has a SQLite for its trace files. */
static bool is_other(const struct dl_phdr_info *info)
{
	return info->dlpi_name && strchr(info->dlpi_name, '/') &&
	       (library_is_called_by_name(info) || library_object_defines(info, "qp_record"));
}

struct visit {
	struct copies_search *search;
	struct static_copy *copies;
	size_t room, count, at;
	void (*no_table)(const char *path, enum static_found found);
};

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct visit *visit = context;
	struct copies_search *search = visit->search;
	struct static_table tables[STATIC_TABLES_MAX];
	struct static_object object;
	enum static_found found;
	char path[PATH_MAX];
	size_t count, at = visit->at++;

	(void)size;
	if (at == 0 && info->dlpi_subs != search->gone) {
		search->seen = search->has_seen_program;
		search->gone = info->dlpi_subs;
	}
	if (at < search->seen)
		return 0;
	if (visit->room - visit->count < STATIC_TABLES_MAX)
		return 1;
	search->seen++;
	search->has_seen_program = true;
	if (is_other(info))
		return 0;
	switch (found = static_find(info, &object, tables, &count)) {
	case STATIC_NOTHING: return 0;
	case STATIC_NO_TABLE:
	case STATIC_UNKNOWN_TABLE:
		copy_path(path, info);
		visit->no_table(path, found);
		return 0;
	case STATIC_TABLE: break;
	}
	for (size_t i = 0; i < count; i++) {
		struct static_copy *copy = &visit->copies[visit->count++];

		copy->object = object;
		copy->table = tables[i];
		copy->is_of_program = is_program(info);
		copy_path(copy->path, info);
	}
	return 0;
}

size_t copies_find(struct copies_search *search, struct static_copy *copies, size_t room,
                   void (*no_table)(const char *path, enum static_found found))
{
	struct visit visit = { search, copies, room, 0, 0, no_table };

	loader_each(see_object, &visit);
	return visit.count;
}

struct wanted {
	const void *routines;
	struct static_copy *copy;
};

static int see_table(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct wanted *wanted = context;
	struct static_table tables[STATIC_TABLES_MAX];
	uintptr_t address = (uintptr_t)wanted->routines;
	bool is_inside = false;
	size_t count;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		is_inside |=
			info->dlpi_phdr[i].p_type == PT_LOAD &&
			address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz;
	if (!is_inside)
		return 0;
	static_find(info, &wanted->copy->object, tables, &count);
	for (size_t i = 0; i < count; i++)
		if (tables[i].routines == wanted->routines) {
			wanted->copy->table = tables[i];
			wanted->copy->is_of_program = is_program(info);
			copy_path(wanted->copy->path, info);
			return 2;
		}
	return 1;
}

bool copies_find_table(const void *routines, struct static_copy *copy)
{
	struct wanted wanted = { routines, copy };

	return loader_each(see_table, &wanted) == 2;
}
