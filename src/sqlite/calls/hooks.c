/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/calls/hooks.h"

#include "hook/hook.h"
#include "sqlite/calls/workers.h"
#include "sqlite/calls/wrappers.h"
#include "sqlite/locks/locks.h"
#include "sqlite/memory/allocator.h"
#include "sqlite/plan/module_methods.h"
#include "sqlite/runs/mutex_wait.h"
#include "sqlite/calls/adopt.h"

/* The hook of each library's sqlite3_step; NULL: not yet. Only the source uses it. */
static const struct import_hook *steps[HOST_LIBRARIES_MAX];

static int add_libraries(struct import_hook *hooks)
{
	int count = 0;

	for (int i = 0; i < HOST_LIBRARIES_MAX; i++) {
		/* A place that is not after `hooks` is counted. Otherwise a fork interrupted the
		 * thread that filled it. */
		if (!host_api(&host_libraries[i]) || (steps[i] && steps[i] < hooks))
			continue;
		steps[i] = &hooks[count];
		if (host_is_patched(&host_libraries[i]))
			hooks[count++] = workers_hook(&host_libraries[i]);
		else
			count += wrappers_hooks(&host_libraries[i], &hooks[count]);
	}
	return count;
}

/* Relaxed: seeing a statement a moment later or earlier is harmless, and the wrappers' data was
 * written before the slots that lead to them. */
static void notify_libraries(void)
{
	mutex_wait_follow();
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++) {
		/* A word of data is also a slot: that of the table of routines. */
		bool in_library = steps[i] && steps[i]->in_library && !host_libraries[i].is_bound;

		if (host_is_patched(&host_libraries[i]))
			continue;
		__atomic_store_n(&host_libraries[i].calls_are_seen, in_library, __ATOMIC_RELAXED);
		/* Without slots of its own, sqlite3_exec() would not pass a wrapper. */
		__atomic_store_n(&host_libraries[i].steps_are_seen, in_library && steps[i]->elsewhere,
		                 __ATOMIC_RELAXED);
	}
}

static const struct hook_source source = {
	.family = "sqlite3_",
	.most = HOST_LIBRARIES_MAX * WRAPPERS_MAX,
	.add = add_libraries,
	.patched = notify_libraries,
};

bool hooks_install(const struct host_library *library)
{
	hook_patch(&source);
	if (!__atomic_load_n(&library->steps_are_seen, __ATOMIC_RELAXED))
		static_adopt_late(library);
	return __atomic_load_n(&library->steps_are_seen, __ATOMIC_RELAXED);
}

void hooks_restore(void)
{
	locks_restore();
	allocators_restore();
	hook_restore();
	module_methods_restore(); /* no preparation replaces them again from now on */
}

void hooks_follow(void)
{
	hook_try_patch(&source);
}
