#include "watch/hooks.h"

#include <pthread.h>
#include <string.h>

#include "base/lock.h"
#include "hook/exit.h"
#include "hook/import.h"
#include "hook/lookup.h"
#include "hook/signals.h"
#include "hook/waits.h"
#include "watch/wrappers.h"

/* Those that are not a library's come first: libraries follow as they are met. */
#define HOOKS_MAX                                                                                            \
	(1 + ENDS_HOOKS_MAX + SIGNALS_HOOKS_MAX + WAITS_HOOKS_MAX + HOST_LIBRARIES_MAX * WRAPPERS_MAX)
static struct got_hook hooks[HOOKS_MAX];
static int hooks_count;
static int steps[HOST_LIBRARIES_MAX]; /* the hook of each library's sqlite3_step; 0: not yet */

static void *replacement_of(const char *symbol, const void *function)
{
	for (int i = 0; i < hooks_count; i++)
		if (hooks[i].real == function && !strcmp(hooks[i].symbol, symbol))
			return hooks[i].replacement;
	return NULL;
}

static void add_hooks(void)
{
	if (!hooks_count) {
		/* So that none of a library's is the first: `steps`. */
		hooks_count = ends_hooks(hooks);
		hooks_count += signals_hooks(&hooks[hooks_count]);
		hooks_count += waits_hooks(&hooks[hooks_count]);
		hooks_count += lookup_hook(&hooks[hooks_count], replacement_of);
	}
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++) {
		int count;

		if (!__atomic_load_n(&host_libraries[i].api, __ATOMIC_ACQUIRE) || steps[i])
			continue;
		steps[i] = hooks_count;
		count = wrappers_hooks(&host_libraries[i], &hooks[hooks_count]);
		/* release: replacement_of() on another thread */
		__atomic_store_n(&hooks_count, hooks_count + count, __ATOMIC_RELEASE);
	}
}

/* Whatever was left half done is done again or can stay: each slot is one store. */
LOCK_DEFINE(lock, LOCK_HOOKS, .at_fork = LOCK_LEFT);

/* With the lock held. */
static void patch(void)
{
	/* Again, for who brings an object or a library meanwhile does not wait; but not for
	 * ever, when there is no memory to look with. */
	for (int i = 0; i < 4; i++) {
		int before = hooks_count;

		add_hooks();
		if (hooks_count == before && !got_stale())
			break;
		got_patch(hooks, hooks_count);
	}
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++)
		host_libraries[i].calls_are_seen = steps[i] && hooks[steps[i]].in_library;
}

bool hooks_install(const struct host_library *library)
{
	const struct got_hook *step;
	bool result;

	pthread_mutex_lock(&lock);
	patch();
	step = &hooks[steps[library - host_libraries]];
	/* Without slots of its own, sqlite3_exec() would go by us. */
	result = step->in_library && step->elsewhere;
	pthread_mutex_unlock(&lock);
	return result;
}

void hooks_follow(void)
{
	/* Another thread is at it. */
	if (pthread_mutex_trylock(&lock))
		return;
	patch();
	pthread_mutex_unlock(&lock);
}
