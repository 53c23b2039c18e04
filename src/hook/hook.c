/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/hook.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/loader.h"
#include "base/lock.h"
#include "hook/calls.h"
#include "hook/confine.h"
#include "hook/exit.h"
#include "hook/lookup.h"
#include "hook/rights.h"
#include "hook/signals.h"
#include "hook/waits.h"
#include "timers/threads.h"

#define OWN_HOOKS_MAX                                                                                        \
	(1 + EXIT_HOOKS_MAX + RIGHTS_HOOKS_MAX + CONFINE_HOOKS_MAX + SIGNALS_HOOKS_MAX + WAITS_HOOKS_MAX +   \
	 CALLS_HOOKS_MAX)

BOUNDED_WAIT_DEFINE(for_hooks, "a library that comes: another thread patches", BOUND_MS(2000),
                    "that thread, when it is done");

/* Whatever was left half done is done again or can stay: each slot is one store. */
LOCK_DEFINE(lock, LOCK_HOOKS, .at_fork = LOCK_BRIEFLY);
static struct import_hook *hooks; /* made once */
static int hooks_count;

/* The library's own locks cannot be waited for while one thread alone has queries, and it takes a
 * hundred of them in a short one. */
static void thread_came(void)
{
	static bool has_ended; /* atomic */

	/* While another thread patches the next one that comes does it. */
	if (__atomic_load_n(&has_ended, __ATOMIC_RELAXED) || !lock_try(&lock))
		return;
	if (!has_ended)
		import_end_sparing();
	__atomic_store_n(&has_ended, true, __ATOMIC_RELAXED);
	lock_release(&lock);
}

static void *replacement_of(const char *symbol, const void *function)
{
	/* acquire: the hooks were written before they were counted */
	int count = __atomic_load_n(&hooks_count, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++)
		if (hooks[i].real == function && !strcmp(hooks[i].symbol, symbol))
			return hooks[i].replacement;
	return NULL;
}

/* With the lock held, as all below, and loader_acquire(). False: no memory. */
static bool add_hooks(const struct hook_source *source)
{
	int count = hooks_count;

	if (!hooks && !(hooks = calloc((size_t)(OWN_HOOKS_MAX + source->most), sizeof(*hooks))))
		return false;
	if (!count) {
		threads_notify_company(thread_came);
		count = exit_hooks(hooks);
		count += rights_hooks(&hooks[count]);
		count += confine_hooks(&hooks[count]);
		count += signals_hooks(&hooks[count]);
		count += waits_hooks(&hooks[count]);
		count += calls_hooks(&hooks[count]);
		count += lookup_hook(&hooks[count], source->family, replacement_of);
	}
	count += source->add(&hooks[count]);
	/* release: replacement_of() on another thread */
	__atomic_store_n(&hooks_count, count, __ATOMIC_RELEASE);
	return true;
}

static void log_hooks(int first)
{
	for (int i = first; i < hooks_count; i++)
		if (!hooks[i].real)
			debug_log(DEBUG_HOOKS, "%s: not hooked, because the process has no such function",
			          hooks[i].symbol);
		else
			debug_log(DEBUG_HOOKS, "%s: slots in its own library %d, elsewhere %d",
			          hooks[i].symbol, hooks[i].in_library, hooks[i].elsewhere);
}

static bool try_add_hooks(const struct hook_source *source, uint64_t loader_ns)
{
	bool done = loader_acquire(loader_ns);

	if (done) {
		done = add_hooks(source);
		loader_release();
	}
	return done;
}

/* `loader_ns`: for loader_acquire(). */
static void patch(const struct hook_source *source, uint64_t loader_ns)
{
	/* Repeatedly, because a thread that brings an object or a library meanwhile does not wait;
	 * but not without a limit, if there is no memory for the scan. */
	for (int i = 0; i < 4; i++) {
		int before = hooks_count;

		if (!try_add_hooks(source, loader_ns) || (hooks_count == before && !import_stale()) ||
		    !import_patch(&(struct import_table){ hooks, hooks_count, source->family }, loader_ns))
			break;
		log_hooks(before);
	}
	source->patched();
}

void hook_patch(const struct hook_source *source)
{
	struct bounded_wait wait = bounded_wait_begin(&for_hooks);

	/* With a limit, because the holder of the lock may wait for the loader's lock, which this
	 * thread holds if a constructor of a library that is being loaded called it. */
	if (!lock_acquire_within(&lock, &wait))
		return;
	patch(source, bounded_wait_remaining(&wait));
	lock_release(&lock);
}

void hook_try_patch(const struct hook_source *source)
{
	if (!lock_try(&lock))
		return;
	patch(source, LOADER_BRIEFLY);
	lock_release(&lock);
}

void hook_restore(void)
{
	lock_acquire(&lock);
	import_restore(&(struct import_table){ .hooks = hooks, .count = hooks_count });
	lock_release(&lock);
}

bool hook_try_set(const struct hook_slot *slots, int count)
{
	bool all = true;

	if (!lock_try(&lock))
		return false;
	for (int i = 0; all && i < count; i++)
		all = import_set(slots[i].at, slots[i].was, slots[i].value);
	lock_release(&lock);
	return all;
}
