/*
 * fork().
 *
 * Of the parent's threads only the one that forked goes on in the child; no kernel
 * timer does. Another thread may have been anywhere: in the handler, between
 * reserve and commit, halfway through taking a slot. So the child takes nothing
 * over but the forking thread's slot and its running queries, and starts the rest
 * anew: an empty ring, all other slots free, counters at 0, new random numbers. If a
 * query is running on the thread (fork in a user function) its timers start at once.
 */
#include <errno.h>
#include <pthread.h>

#include "sampler/ring_reader.h"
#include "handler/ledger.h"
#include "handler/unwind/stack_copy.h"
#include "sampler/internal.h"

#define HOOKS 8

static struct fork_hooks hooks[HOOKS];
static int hook_count;

void sampler_add_fork_hooks(const struct fork_hooks *added)
{
	int count = __atomic_load_n(&hook_count, __ATOMIC_RELAXED);

	if (count == HOOKS)
		return;
	hooks[count] = *added;
	__atomic_store_n(&hook_count, count + 1, __ATOMIC_RELEASE);
}

static void before(void)
{
	for (int i = __atomic_load_n(&hook_count, __ATOMIC_ACQUIRE); i-- > 0;) {
		if (hooks[i].before != NULL)
			hooks[i].before();
	}
}

static void after_in_parent(void)
{
	int count = __atomic_load_n(&hook_count, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++) {
		if (hooks[i].after_in_parent != NULL)
			hooks[i].after_in_parent();
	}
}

static void after_in_child(void)
{
	int saved_errno = errno;
	struct ring *ring = sampler_ring();
	struct thread *thread = thread_current;
	const struct query_tag *tag = thread != NULL ? sampler_top(thread) : NULL;

	if (ring != NULL)
		ring_reset_in_child(ring);
	stack_copy_reset_in_child();
	ledger_reset_in_child();
	threads_after_fork();
	sampler_after_fork();
	stacks_after_fork();
	for (int i = 0; i < hook_count; i++) {
		if (hooks[i].after_in_child != NULL)
			hooks[i].after_in_child();
	}
	if (tag != NULL)
		timers_follow(thread, tag);
	errno = saved_errno;
}

int fork_init(void)
{
	static bool done;
	int error = done ? 0 : pthread_atfork(before, after_in_parent, after_in_child);

	done |= error == 0;
	return error;
}
