/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/hook.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "hook/calls.h"
#include "hook/exit.h"
#include "hook/lookup.h"
#include "hook/rights.h"
#include "hook/signals.h"
#include "hook/waits.h"
#include "sampler/threads.h"

#define OWN_HOOKS_MAX                                                                                        \
	(1 + EXIT_HOOKS_MAX + RIGHTS_HOOKS_MAX + SIGNALS_HOOKS_MAX + WAITS_HOOKS_MAX + CALLS_HOOKS_MAX)

/* Whatever was left half done is done again or can stay: each slot is one store. */
LOCK_DEFINE(lock, LOCK_HOOKS, .at_fork = LOCK_LEFT);
static struct import_hook *hooks; /* made once */
static int hooks_count;

/* The library's own locks cannot be waited for while one thread alone has queries, and it takes a
 * hundred of them in a short one. Both atomic. */
static bool has_company, is_sparing = true;
static const struct hook_source *newest; /* atomic */

static void thread_came(void)
{
	if (!__atomic_load_n(&is_sparing, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&has_company, true, __ATOMIC_RELAXED);
	/* Another thread may be patching: then the next one that comes looks again. */
	hook_try_patch(__atomic_load_n(&newest, __ATOMIC_ACQUIRE));
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

/* With the lock held, as all below. False: no memory. */
static bool add_hooks(const struct hook_source *source)
{
	int count = hooks_count;

	if (!hooks && !(hooks = calloc((size_t)(OWN_HOOKS_MAX + source->most), sizeof *hooks)))
		return false;
	if (!count) {
		__atomic_store_n(&newest, source, __ATOMIC_RELEASE);
		threads_tell_company(thread_came);
		count = exit_hooks(hooks);
		count += rights_hooks(&hooks[count]);
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
			debug_log(DEBUG_HOOKS, "%s: not hooked, the process has no such function",
			          hooks[i].symbol);
		else
			debug_log(DEBUG_HOOKS, "%s: slots in its own library %d, elsewhere %d",
			          hooks[i].symbol, hooks[i].in_library, hooks[i].elsewhere);
}

static void patch(const struct hook_source *source)
{
	/* Again, as a thread that brings an object or a library meanwhile does not wait; but
	 * not for ever, when there is no memory to look with. */
	for (int i = 0; i < 4; i++) {
		int before = hooks_count;
		bool spares = !__atomic_load_n(&has_company, __ATOMIC_RELAXED);

		if (!add_hooks(source) || (hooks_count == before && spares == is_sparing && !import_stale()))
			break;
		import_patch(&(struct import_table){ hooks, hooks_count, source->family, spares });
		__atomic_store_n(&is_sparing, spares, __ATOMIC_RELAXED);
		log_hooks(before);
	}
	source->patched();
}

void hook_patch(const struct hook_source *source)
{
	pthread_mutex_lock(&lock);
	patch(source);
	pthread_mutex_unlock(&lock);
}

void hook_try_patch(const struct hook_source *source)
{
	if (pthread_mutex_trylock(&lock))
		return;
	patch(source);
	pthread_mutex_unlock(&lock);
}

bool hook_try_set(const struct hook_slot *slots, int count)
{
	bool all = true;

	if (pthread_mutex_trylock(&lock))
		return false;
	for (int i = 0; i < count; i++)
		all &= import_set(slots[i].at, slots[i].value);
	pthread_mutex_unlock(&lock);
	return all;
}
