/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/calls/adopt.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/debug.h"
#include "base/loader.h"
#include "base/lock.h"
#include "base/task_file.h"
#include "base/text.h"
#include "modules/made_code.h"
#include "modules/modules.h"
#include "sqlite/calls/wrappers.h"
#include "sqlite/static/freeze.h"
#include "sqlite/static/patch.h"
#include "sqlite/static/stub.h"

/* Modules can be unmapped; this one must not be any more. */
static bool keep(const struct static_copy *copy)
{
	void *handle = NULL;

	if (!copy->is_of_program && loader_acquire(LOADER_BRIEFLY)) {
		handle = loader_find(copy->path, RTLD_NODELETE);
		loader_release();
	}
	return copy->is_of_program || handle;
}

static void log_entries(const struct static_copy *copy, const struct patch_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		debug_log(DEBUG_HOOKS, "%s: %s: %s", copy->path, entries[i].name,
		          entries[i].refused ? entries[i].refused : "patched");
}

/* The library's own calls of SQLite, and those of other extensions, use a copy of its table, in
 * which the patched functions are replaced by the real ones. Routines that the version lacks are
 * never used, as in its own table. */
static struct sqlite3_api_routines *copy_routines(const struct static_table *table)
{
	struct sqlite3_api_routines *routines = calloc(1, sizeof(*routines));
	size_t size = table->count * sizeof(*table->routines);

	if (routines)
		memcpy(routines, table->routines, size < sizeof(*routines) ? size : sizeof(*routines));
	return routines;
}

/* The function that two functions of the interface both call, and do no more. */
static uintptr_t called_by_both(const struct static_range *code, uintptr_t one, uintptr_t other,
                                bool is_prepare)
{
	uintptr_t called = stub_only_call(code, one, is_prepare);

	return called == stub_only_call(code, other, false) ? called : 0;
}

/* 0: the version has none. */
static uintptr_t routine(const struct static_table *table, size_t offset)
{
	return offset / sizeof(*table->routines) < table->count
	               ? table->routines[offset / sizeof(*table->routines)]
	               : 0;
}

#define ROUTINE(table, name) routine(table, offsetof(struct sqlite3_api_routines, name))

static const char *patch(struct host_library *library, const struct static_copy *copy, patch_moment *moment)
{
	struct sqlite3_api_routines *routines = copy_routines(&copy->table);
	struct patch_entry entries[PATCH_ENTRIES_MAX];
	const struct static_table *table = &copy->table;
	size_t members[PATCH_ENTRIES_MAX], count, named;
	struct patch_area area;
	uintptr_t other_prepare;
	const char *why;

	if (!routines)
		return "out of memory";
	/* sqlite3_prepare_v3() came with 3.20. */
	other_prepare = ROUTINE(table, prepare_v3) ? ROUTINE(table, prepare_v3) : ROUTINE(table, prepare);
	named = count = wrappers_entries(library, routines, entries, members);
	entries[count++] = wrappers_lock_and_prepare(
		library, called_by_both(&copy->object.code, ROUTINE(table, prepare_v2), other_prepare, true));
	entries[count++] =
		wrappers_close_any(library, called_by_both(&copy->object.code, ROUTINE(table, close),
	                                                   ROUTINE(table, close_v2), false));
	why = patch_functions(&copy->object, entries, count, moment, &area);
	log_entries(copy, entries, count);
	if (why) {
		free(routines);
		return why;
	}
	for (size_t i = 0; i < named; i++)
		memcpy((char *)routines + members[i], entries[i].real, sizeof(*entries[i].real));
	host_fill_omitted(routines);
	__atomic_store_n(&library->is_patched, true, __ATOMIC_RELAXED);
	__atomic_store_n(&library->calls_are_seen, true, __ATOMIC_RELAXED);
	__atomic_store_n(&library->steps_are_seen, true, __ATOMIC_RELAXED);
	/* Release: the rest of the table. */
	__atomic_store_n(&library->api, routines, __ATOMIC_RELEASE);
	made_code_add(&(struct made_code){ area.start, area.code_end, area.unwinding, area.unwinding_end });
	if (modules_generation())
		modules_refresh(true);
	return NULL;
}

char *static_adopt(const struct static_copy *copy, bool *known)
{
	const sqlite3_api_routines *api = (const sqlite3_api_routines *)(const void *)copy->table.routines;
	const struct host_library *library = host_find(api);
	const char *why;
	char *error = NULL, *sentence;

	*known = library && host_is_patched(library);
	if (*known)
		return NULL;
	if (!keep(copy))
		return text_format("its file cannot be opened again, so it might be unmapped");
	library = library ? library : host_adopt(api, &error);
	if (!library) {
		sentence = text_format("%s", error ? error : "SQLite has no memory");
		api->free(error);
		return sentence ? sentence : strdup("");
	}
	why = patch(&host_libraries[library - host_libraries], copy, NULL);
	if (!why)
		return NULL;
	sentence = text_format("queryprof cannot follow the SQLite inside: %s: %s", "sqlite3_step", why);
	return sentence ? sentence : strdup("");
}

/* --- late ---------------------------------------------------------------------------------------- */

/* queryprof's own threads never call the host's SQLite. */
static bool is_ours(const char *task)
{
	char name[16];

	task_file_read((uint32_t)strtoul(task, NULL, 10), "comm", name, sizeof(name));
	return !strcmp(name, "queryprof\n");
}

static bool is_alone(void)
{
	int count = 0, cancel = cancel_hold();
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;

	while (tasks && (entry = readdir(tasks)))
		count += entry->d_name[0] != '.' && !is_ours(entry->d_name);
	if (tasks)
		closedir(tasks);
	cancel_release(cancel);
	return count == 1;
}

/* The calling thread is not at the beginning of one of SQLite's functions: the enclosing calls
 * continue after a call instruction. */
static const char *patch_late(struct host_library *library, bool alone)
{
	struct static_copy *copy = malloc(sizeof(*copy));
	const char *why = "out of memory";

	if (copy && !copies_find_table(library->table, copy))
		why = "it is not inside the program or a module";
	else if (copy && !keep(copy))
		why = "its file cannot be opened again, so it might be unmapped";
	else if (copy)
		why = patch(library, copy, alone ? NULL : freeze_others);
	free(copy);
	return why;
}

BOUNDED_WAIT_DEFINE(for_patching, "a SQLite that comes late: another thread patches one", BOUND_MS(2000),
                    "that thread, when it is done");

LOCK_DEFINE(late_lock, LOCK_LATE_PATCH, .at_fork = LOCK_BRIEFLY); /* dlopen() waits for the loader's lock */

void static_adopt_late(const struct host_library *library)
{
	struct host_library *late = &host_libraries[library - host_libraries];
	struct bounded_wait wait = bounded_wait_begin(&for_patching);
	bool alone = is_alone();

	/* With a limit, because the holder of the lock may wait for the loader's lock, which this
	 * thread may hold. */
	if (!lock_acquire_within(&late_lock, &wait))
		return;
	/* Only once, because it takes long if the other threads are always inside SQLite. */
	if (!host_is_patched(late) && (!late->unpatched || alone))
		/* Relaxed: texts are constants. */
		__atomic_store_n(&late->unpatched, patch_late(late, alone), __ATOMIC_RELAXED);
	lock_release(&late_lock);
}
