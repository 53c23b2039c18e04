/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork().
 *
 * In the child, only the thread that forked continues, and kernel timers do not. Another thread may
 * have been anywhere: in the handler, between reserve and commit, halfway through taking a slot. So
 * the child adopts only the forking thread's slot and its running queries, and starts everything else
 * from scratch: an empty ring, all other slots free, counters at 0, new random numbers. If a query is
 * running on the thread (fork in a user function), its timers start immediately.
 */
#include "process/fork.h"

#include <errno.h>
#include <pthread.h>

#include "base/lock.h"
#include "base/own_calls.h"
#include "base/own_process.h"
#include "collect/ledger_reader.h"
#include "collect/ring_reader.h"
#include "collect/slots.h"
#include "collect/state.h"
#include "handler/budget.h"
#include "timers/memory_blocks.h"
#include "timers/nesting.h"
#include "timers/stacks.h"
#include "timers/threads.h"
#include "timers/timers.h"

static void reset_counters(void)
{
	for (int which = 0; which < SAMPLER_COUNTERS; which++)
		counter_set((enum sampler_counter)which, 0);
	counter_set(SAMPLER_SLOTS, slots_count());
	counter_set(SAMPLER_THREADS, thread_current != NULL);
}

static void (*renew_ring)(void); /* NULL: it is private */

void sampler_at_fork(void (*renew)(void))
{
	__atomic_store_n(&renew_ring, renew, __ATOMIC_RELEASE);
}

static void empty_ring(void)
{
	void (*renew)(void) = __atomic_load_n(&renew_ring, __ATOMIC_ACQUIRE);

	if (renew)
		renew();
	else if (sampler_ring())
		ring_reset_in_child(sampler_ring());
}

static void after_in_child(void)
{
	int saved_errno = errno;
	struct thread *thread = thread_current;
	const struct query_tag *tag = thread ? nesting_top(thread) : NULL;

	own_process_renew();
	own_calls_renew_in_child();
	empty_ring();
	ledger_reset_in_child();
	budget_after_fork();
	threads_after_fork();
	reset_counters();
	stacks_after_fork();
	memory_blocks_forget();
	locks_after_fork_in_child();
	if (tag)
		timers_follow(thread, tag);
	errno = saved_errno;
}

/* From the beginning: what starts the sampler on another thread holds locks, too. Without
 * memory now it is tried again by fork_init(). */
__attribute__((constructor)) static void follow_forks(void)
{
	fork_init();
}

static bool done;

void fork_disable(void)
{
	done = true;
}

int fork_init(void)
{
	int error = done ? 0 : pthread_atfork(locks_before_fork, locks_after_fork_in_parent, after_in_child);

	done |= error == 0;
	return error;
}
