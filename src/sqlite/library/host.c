/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite libraries of the process that queryprof has found.
 */
#include "sqlite/library/host.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounded_wait.h"
#include "base/loaded_symbol.h"
#include "base/loader.h"
#include "base/lock.h"
#include "collect/open_waits.h"
#include "sqlite/library/idle.h"
#include "sqlite/library/library.h"
#include "sqlite/library/calling.h"

struct host_library host_libraries[HOST_LIBRARIES_MAX];
DEFINE_ADDRESS_OF_RECORDER(struct host_library, host_libraries)

LOCK_DEFINE(lock, LOCK_LIBRARIES);

/* SQLite may wait in there, for the forking thread, too. */
LOCK_DEFINE(statics, LOCK_SQLITE, .at_fork = LOCK_BRIEFLY);
static __thread unsigned statics_entered;
static __thread bool has_statics;

BOUNDED_WAIT_DEFINE(for_statics, "a call of SQLite's that takes its mutexes: another thread's", NS_PER_S,
                    "that thread, when it is done");

/* A thread that does not get the lock continues, because the lock is only for fork(). */
NOT_ANALYSED void host_enter_statics(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_statics);

	if (!statics_entered++)
		has_statics = lock_acquire_within(&statics, &wait);
}

NOT_ANALYSED void host_leave_statics(void)
{
	if (!--statics_entered && has_statics)
		lock_release(&statics);
}

const struct host_library *host_find_current(void)
{
	struct calling *calling = calling_here();
	const struct call_slot *mapping = calling ? calling_find(calling, __builtin_frame_address(0)) : NULL;

	if (mapping)
		return mapping->library;
	return calling && calling->library ? calling->library : &host_libraries[0];
}

/* A library has one table of routines, but recording makes one of its own. */
const struct host_library *host_find(const sqlite3_api_routines *api)
{
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++) {
		const sqlite3_api_routines *known = host_api(&host_libraries[i]);

		if (known && (known == api || known->libversion == api->libversion))
			return &host_libraries[i];
	}
	return NULL;
}

struct mapping {
	uintptr_t address, start, end;
	const char *path;
	bool is_bound;
};

static int find_mapping(struct dl_phdr_info *info, size_t size, void *context)
{
	struct mapping *mapping = context;
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + segment->p_vaddr < start)
			start = info->dlpi_addr + segment->p_vaddr;
		if (info->dlpi_addr + segment->p_vaddr + segment->p_memsz > end)
			end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
	}
	if (mapping->address < start || mapping->address >= end)
		return 0;
	*mapping = (struct mapping){ mapping->address, start, end, info->dlpi_name, library_is_bound(info) };
	return 1;
}

struct function_search {
	const struct host_library *library;
	const char *name;
	void *found;
};

static int find_function(struct dl_phdr_info *info, size_t size, void *context)
{
	struct function_search *search = context;
	struct mapping mapping = { .address = search->library->start };
	const ElfW(Sym) *symbol;

	if (!find_mapping(info, size, &mapping))
		return 0;
	symbol = loaded_symbol_find(info, search->name, STT_FUNC);
	if (symbol)
		search->found = (void *)(info->dlpi_addr + symbol->st_value);
	return 1;
}

void *host_function(const struct host_library *library, const char *name)
{
	struct function_search search = { library, name, NULL };

	loader_each(find_function, &search);
	return search.found;
}

static const char *make_name(const char *version, const char *path)
{
	char *name = NULL, *resolved;

	if (!path || !*path)
		path = "/proc/self/exe"; /* the program itself */
	resolved = realpath(path, NULL);
	if (asprintf(&name, "%s %s", version, resolved ? resolved : path) < 0)
		name = NULL;
	free(resolved);
	return name ? name : "SQLite";
}

#define END_OF(member) (offsetof(sqlite3_api_routines, member) + sizeof(void *))

static intptr_t omitted(void)
{
	return 0;
}

/* Before 3.20 it reads beyond its counters for the newer ones. */
static int old_stmt_status(sqlite3_stmt *stmt, int counter, int resets)
{
	return counter > SQLITE_STMTSTATUS_VM_STEP
	               ? 0
	               : host_library()->table->stmt_status(stmt, counter, resets);
}

void host_fill_omitted(sqlite3_api_routines *routines)
{
	const void *const routine = (const void *)omitted;

	for (char *at = (char *)routines; at < (char *)routines + END_OF(value_pointer);
	     at += sizeof(routine))
		if (!memcmp(at, &(void *){ NULL }, sizeof(routine)))
			memcpy(at, &routine, sizeof(routine));
	if (routines->libversion_number() < 3020000)
		routines->stmt_status = old_stmt_status;
}

/* A table has the length of its version. Bytes beyond its end are never used. */
static size_t table_bytes(const sqlite3_api_routines *api)
{
	static const struct {
		int version;
		size_t bytes;
	} tables[] = {
		{ 3039000, END_OF(db_name) },
		{ 3022000, END_OF(vtab_collation) },
		{ 3020000, END_OF(value_pointer) },
		{ 0, END_OF(expanded_sql) },
	};
	size_t i = 0;

	while (api->libversion_number() < tables[i].version)
		i++;
	return tables[i].bytes;
}

/* Its table without NULL. */
static const sqlite3_api_routines *complete(const struct host_library *library)
{
	static sqlite3_api_routines complete_tables[HOST_LIBRARIES_MAX];
	sqlite3_api_routines *copy = &complete_tables[library - host_libraries];

	memcpy(copy, library->table, table_bytes(library->table));
	host_fill_omitted(copy);
	return copy;
}

/* `own`: the object that has this library. */
static void fill(struct host_library *library, const sqlite3_api_routines *api, const struct mapping *mapping,
                 const struct mapping *own)
{
	library->start = mapping->start;
	library->end = mapping->end;
	library->is_bound = mapping->is_bound;
	library->name = make_name(api->libversion(), mapping->path);
	library->name_hash = hash_bytes(library->name, strlen(library->name));
	open_waits_add_engine(mapping->start, mapping->end);
	/* A thread that waits for a connection as it enters a step does so in queryprof's name: SQLite's own
	 * functions jump to pthread_mutex_lock(). A program with queryprof inside has functions of the host's
	 * there, too. */
	if (own->path && own->path[0])
		open_waits_add_engine(own->start, own->end);
	library->table = api;
	__atomic_store_n(&library->api, complete(library), __ATOMIC_RELEASE);
}

static struct host_library *find_free(void)
{
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++)
		if (!host_api(&host_libraries[i]))
			return &host_libraries[i];
	return NULL;
}

const struct host_library *host_adopt(const sqlite3_api_routines *api, char **error)
{
	struct mapping mapping = { .address = (uintptr_t)api->libversion },
		       own = { .address = (uintptr_t)fill };
	const struct host_library *known = host_find(api);
	struct host_library *added;

	if (known)
		return known;
	if (api->libversion_number() < HOST_OLDEST_NUMBER) {
		*error = api->mprintf("queryprof needs SQLite " HOST_OLDEST " or newer, this is %s",
		                      api->libversion());
		return NULL;
	}
	/* Before the lock, as the loader calls back. */
	loader_each(find_mapping, &mapping);
	loader_each(find_mapping, &own);
	lock_acquire(&lock);
	known = host_find(api);
	added = known ? NULL : find_free();
	if (added) {
		fill(added, api, &mapping, &own);
		/* Permanently: every call is now in the table of calls, sampled or not. */
		if (added != host_libraries)
			sessions_watch_more(1);
	}
	lock_release(&lock);
	if (!known && !added)
		*error = api->mprintf("queryprof already follows %d other SQLite libraries of this process",
		                      HOST_LIBRARIES_MAX);
	return known ? known : added;
}
