/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/module_methods.h"

#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "handler/unwind/stack_copy.h"
#include "hook/hook.h"
#include "sqlite/plan/module_counts.h"
#include "timers/threads.h"

/* Loading and unloading an extension again and again takes another number each time. */
#define MODULES_MAX 48
#define LOOKS_AGAIN_MAX 100

/* How many plans are being read; -1: methods are being put back. */
static int held;                                                          /* atomic */
static __thread int held_here __attribute__((tls_model("initial-exec"))); /* by this thread */
static bool restore_is_due;                                               /* atomic: when no plan is read */

static void hold_in_child(void)
{
	__atomic_store_n(&held, held_here, __ATOMIC_RELAXED);
}

/* Replacing takes the lock of dl_iterate_phdr(), and the host's callback of that may prepare a statement: so
 * nothing waits for this lock. */
LOCK_DEFINE(lock, LOCK_MODULE_METHODS, .at_fork = LOCK_LEFT, .in_child = hold_in_child);

/* A module, and the methods that it had. Written once, before a slot leads here. */
static struct module_methods {
	const sqlite3_module *functions; /* NULL: none */
	best_index_function *best_index;
	find_function_function *find_function;
	filter_function *filter;
	is_at_end_function *is_at_end;
} modules[MODULES_MAX];

uint64_t module_methods_changed_ns;
uint32_t module_methods_version;
bool module_methods_are_followed;

bool module_is_own_name(const char *name)
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

/* --- the replacements ------------------------------------------------------------------------- */

#define EACH(METHOD)                                                                                         \
	METHOD(0)                                                                                            \
	METHOD(1)                                                                                            \
	METHOD(2)                                                                                            \
	METHOD(3)                                                                                            \
	METHOD(4)                                                                                            \
	METHOD(5)                                                                                            \
	METHOD(6)                                                                                            \
	METHOD(7)                                                                                            \
	METHOD(8)                                                                                            \
	METHOD(9)                                                                                            \
	METHOD(10)                                                                                           \
	METHOD(11)                                                                                           \
	METHOD(12)                                                                                           \
	METHOD(13)                                                                                           \
	METHOD(14)                                                                                           \
	METHOD(15)                                                                                           \
	METHOD(16)                                                                                           \
	METHOD(17)                                                                                           \
	METHOD(18)                                                                                           \
	METHOD(19)                                                                                           \
	METHOD(20)                                                                                           \
	METHOD(21)                                                                                           \
	METHOD(22)                                                                                           \
	METHOD(23)                                                                                           \
	METHOD(24)                                                                                           \
	METHOD(25)                                                                                           \
	METHOD(26)                                                                                           \
	METHOD(27)                                                                                           \
	METHOD(28)                                                                                           \
	METHOD(29)                                                                                           \
	METHOD(30)                                                                                           \
	METHOD(31)                                                                                           \
	METHOD(32)                                                                                           \
	METHOD(33)                                                                                           \
	METHOD(34)                                                                                           \
	METHOD(35)                                                                                           \
	METHOD(36)                                                                                           \
	METHOD(37)                                                                                           \
	METHOD(38)                                                                                           \
	METHOD(39)                                                                                           \
	METHOD(40)                                                                                           \
	METHOD(41)                                                                                           \
	METHOD(42)                                                                                           \
	METHOD(43)                                                                                           \
	METHOD(44)                                                                                           \
	METHOD(45)                                                                                           \
	METHOD(46)                                                                                           \
	METHOD(47)

/* Each knows its module's own methods, because a table's module may be a copy, or not known to SQLite. */
#define METHODS(number)                                                                                      \
	static int queryprof_best_index_##number(sqlite3_vtab *table, sqlite3_index_info *info)              \
	{                                                                                                    \
		return module_calls_best_index(number, modules[number].best_index, table, info);             \
	}                                                                                                    \
	static int queryprof_find_function_##number(sqlite3_vtab *table, int argc, const char *name,         \
	                                            module_function **function, void **context)              \
	{                                                                                                    \
		return module_calls_find_function(number, modules[number].find_function, table, argc, name,  \
		                                  function, context);                                        \
	}                                                                                                    \
	static int queryprof_is_at_end_##number(sqlite3_vtab_cursor *cursor)                                 \
	{                                                                                                    \
		const int is_at_end = modules[number].is_at_end(cursor);                                     \
                                                                                                             \
		if (!is_at_end)                                                                              \
			module_counts_row(cursor);                                                           \
		return is_at_end;                                                                            \
	}                                                                                                    \
	static int queryprof_filter_##number(sqlite3_vtab_cursor *cursor, int index, const char *text,       \
	                                     int argc, sqlite3_value **argv)                                 \
	{                                                                                                    \
		module_counts_loop(cursor,                                                                   \
		                   &(struct module_filter){ index, text, argc, queryprof_filter_##number,    \
		                                            queryprof_is_at_end_##number });                 \
		return modules[number].filter(cursor, index, text, argc, argv);                              \
	}
EACH(METHODS)

#define BEST_INDEX(number) queryprof_best_index_##number,
#define FIND_FUNCTION(number) queryprof_find_function_##number,
#define FILTER(number) queryprof_filter_##number,
#define IS_AT_END(number) queryprof_is_at_end_##number,
static best_index_function *const best_index[] = { EACH(BEST_INDEX) };
static find_function_function *const find_function[] = { EACH(FIND_FUNCTION) };
static filter_function *const filter[] = { EACH(FILTER) };
static is_at_end_function *const is_at_end[] = { EACH(IS_AT_END) };
_Static_assert(sizeof(best_index) / sizeof(*best_index) == MODULES_MAX, "one for each module");

static int number_of(best_index_function *function)
{
	for (int i = 0; i < MODULES_MAX; i++)
		if (function == best_index[i])
			return i;
	return -1;
}

/* The methods of a module with that number. A module leaves out what it does not need. */
#define METHODS_MAX 4

static int methods_of(int number, const sqlite3_module *functions, struct hook_slot slots[METHODS_MAX])
{
	const struct module_methods *own = &modules[number];
	const struct hook_slot all[METHODS_MAX] = {
		{ (void **)(uintptr_t)&functions->xBestIndex, (void *)own->best_index,
		  (void *)best_index[number] },
		{ (void **)(uintptr_t)&functions->xFindFunction, (void *)own->find_function,
		  (void *)find_function[number] },
		{ (void **)(uintptr_t)&functions->xFilter, (void *)own->filter, (void *)filter[number] },
		{ (void **)(uintptr_t)&functions->xEof, (void *)own->is_at_end, (void *)is_at_end[number] },
	};
	int count = 0;

	for (int i = 0; i < METHODS_MAX; i++)
		if (all[i].was)
			slots[count++] = all[i];
	return count;
}

static bool is_replaced(const sqlite3_module *functions, int number)
{
	struct hook_slot slots[METHODS_MAX];
	const int count = number >= 0 ? methods_of(number, functions, slots) : 0;

	for (int i = 0; i < count; i++)
		if (*slots[i].at != slots[i].value)
			return false;
	return count > 0;
}

bool module_is_followed(const sqlite3_module *functions)
{
	return is_replaced(functions, number_of(functions->xBestIndex));
}

/* The host may have unloaded the library of a module that it uses no more. */
static bool read_methods(const sqlite3_module *functions, sqlite3_module *now)
{
	return stack_copy_part((uintptr_t)functions, now, offsetof(sqlite3_module, xRename));
}

static uint64_t now_ns(void)
{
	struct thread *thread = sampler_thread();

	return thread ? fast_clock_ns(&thread->clock) : clock_ns(CLOCK_MONOTONIC);
}

/* Replaces the methods of a module, and puts them back. False: not all. */
static bool set_methods(int number, bool is_back)
{
	struct hook_slot slots[METHODS_MAX];
	const int count = methods_of(number, modules[number].functions, slots);
	bool is_set;

	for (int i = 0; is_back && i < count; i++) {
		void *const replacement = slots[i].value;

		slots[i].value = slots[i].was;
		slots[i].was = replacement;
	}
	/* Release and acquire: a run that ends meanwhile began before. */
	__atomic_store_n(&module_methods_changed_ns, UINT64_MAX, __ATOMIC_SEQ_CST);
	is_set = hook_try_set(slots, count);
	__atomic_store_n(&module_methods_changed_ns, now_ns(), __ATOMIC_RELEASE);
	return is_set;
}

/* A module with other methods at the same address is another module: the library of the first one was
 * unloaded. The first one keeps its number and its replacements. */
static bool is_it(int number, const sqlite3_module *functions, const sqlite3_module *now)
{
	struct hook_slot slots[METHODS_MAX];
	const int count = modules[number].functions == functions ? methods_of(number, now, slots) : 0;

	for (int i = 0; i < count; i++)
		if (*slots[i].at != slots[i].was && *slots[i].at != slots[i].value)
			return false;
	return count > 0;
}

static bool is_last(int number)
{
	return number + 1 == MODULES_MAX || !modules[number + 1].functions;
}

static void replace(const sqlite3_module *functions)
{
	sqlite3_module now;
	int i = 0;

	if (!read_methods(functions, &now))
		return;
	while (i < MODULES_MAX && modules[i].functions && !is_it(i, functions, &now))
		i++;
	if (i == MODULES_MAX)
		return;
	if (!modules[i].functions) {
		if (!now.xBestIndex || number_of(now.xBestIndex) >= 0)
			return;
		modules[i].best_index = now.xBestIndex;
		modules[i].find_function = now.xFindFunction;
		modules[i].filter = now.xFilter;
		modules[i].is_at_end = now.xEof;
		/* After the methods, also for the child of a fork. */
		__atomic_store_n(&modules[i].functions, functions, __ATOMIC_RELEASE);
	}
	if (is_replaced(&now, i))
		return;
	if (set_methods(i, false))
		__atomic_store_n(&module_methods_are_followed, true, __ATOMIC_RELAXED);
	else if (is_last(i) && read_methods(functions, &now) && now.xBestIndex == modules[i].best_index &&
	         now.xFindFunction == modules[i].find_function)
		modules[i].functions = NULL; /* it is in memory that cannot be replaced; no slot leads here */
}

/* --- looking for modules ---------------------------------------------------------------------- */

static bool is_foreign(const struct host_library *library, const struct registered_module *module)
{
	static const char *const ours[] = { "queryprof", "system." };

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strncmp(module->name, ours[i], strlen(ours[i])))
			return false;
	return !host_is_within(library, module->functions) || !module_is_own_name(module->name);
}

void module_methods_look(struct session *session)
{
	const sqlite3_api_routines *api = host_api(session->library);
	const struct opcode_library *library = opcode_library(session->library);
	const uint32_t version = __atomic_load_n(&module_methods_version, __ATOMIC_RELAXED);
	sqlite3_mutex *mutex = api->db_mutex(session->db);
	struct module_list now;

	/* Another thread may register a module meanwhile, which no wrapper sees. */
	api->mutex_enter(mutex);
	now = module_list_of(session->db, library->modules);
	if (lock_try(&lock)) { /* otherwise the next preparation looks again */
		for (const struct module_element *at = now.first; at; at = at->next)
			if (at->module->functions && is_foreign(session->library, at->module))
				replace(at->module->functions);
		lock_release(&lock);
		session->modules.first = now.first;
		session->modules.count = now.count;
		session->modules.version = version;
	}
	api->mutex_leave(mutex);
}

void module_methods_look_again(void)
{
	static uint32_t count; /* atomic */

	if (__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) < LOOKS_AGAIN_MAX)
		__atomic_add_fetch(&module_methods_version, 1, __ATOMIC_RELAXED);
}

/* --- putting them back ------------------------------------------------------------------------ */

bool module_methods_hold(void)
{
	int count = __atomic_load_n(&held, __ATOMIC_RELAXED);

	/* Acquire and release: the slots are read in between. */
	while (count >= 0)
		if (__atomic_compare_exchange_n(&held, &count, count + 1, true, __ATOMIC_ACQUIRE,
		                                __ATOMIC_RELAXED)) {
			held_here++;
			return true;
		}
	return false;
}

void module_methods_release(void)
{
	held_here--;
	if (!__atomic_sub_fetch(&held, 1, __ATOMIC_SEQ_CST) &&
	    __atomic_load_n(&restore_is_due, __ATOMIC_SEQ_CST))
		module_methods_restore();
}

void module_methods_restore(void)
{
	int none = 0;

	/* A plan that is being read needs them: its end puts them back. In this order, so that one of the
	 * two threads does it. */
	__atomic_store_n(&restore_is_due, true, __ATOMIC_SEQ_CST);
	if (!__atomic_compare_exchange_n(&held, &none, -1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	if (lock_try(&lock)) {
		__atomic_store_n(&restore_is_due, false, __ATOMIC_RELAXED);
		for (int i = 0; i < MODULES_MAX && modules[i].functions; i++)
			set_methods(i, true);
		lock_release(&lock);
	}
	__atomic_add_fetch(&module_methods_version, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&held, 0, __ATOMIC_RELEASE);
}
