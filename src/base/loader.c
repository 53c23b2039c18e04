/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that look count themselves, and a fork() waits until none is left. A mutex would have an order with
 * the loader's lock: a host's callback of dl_iterate_phdr() may run a query, and a thread of ours that looks
 * waits for that callback.
 *
 * Also compiled into the preload, so without what the rest of base needs.
 */
#include "base/loader.h"

#include <stdint.h>

#include "base/bounded_wait.h"
#include "base/cancel.h"
#include "base/lock.h"

WAIT_DEFINE(for_forks, "a look at the loader's objects: a fork() of another thread", NS_PER_S,
            "nothing, so it looks every 0.1 ms; the fork waits for looks that have begun");
WAIT_DEFINE(for_looks, "fork(): looks at the loader's objects", NS_PER_S,
            "nothing, so it looks every 0.1 ms; a look takes microseconds");
#define NAP_NS 100000

static uint32_t looking;         /* atomic: threads in dl_iterate_phdr() */
static uint32_t forking;         /* atomic: forks that wait for these, or are under way */
static __thread uint32_t nested; /* look-ups of this thread: a host's signal handler may come between */

/* Sequentially consistent, as is loader_before_fork(): of a look-up and a fork that begin at the same moment
 * one sees the other. After a second it goes on: the fork waits no longer either. */
static void begin_look(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_forks);

	while (!nested) {
		__atomic_fetch_add(&looking, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST) || !bounded_wait_left(&wait))
			break;
		__atomic_fetch_sub(&looking, 1, __ATOMIC_SEQ_CST);
		bounded_wait_nap(&wait, NAP_NS);
	}
	nested++;
}

static void end_look(void)
{
	if (!--nested)
		__atomic_fetch_sub(&looking, 1, __ATOMIC_SEQ_CST);
}

int loader_each(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
	int cancel = cancel_hold(), result;

	begin_look();
	result = dl_iterate_phdr(see, context);
	end_look();
	cancel_release(cancel);
	return result;
}

void loader_before_fork(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_looks);
	const uint32_t own = nested != 0;

	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&looking, __ATOMIC_SEQ_CST) > own && bounded_wait_nap(&wait, NAP_NS))
		;
}

void loader_after_fork_in_parent(void)
{
	__atomic_fetch_sub(&forking, 1, __ATOMIC_SEQ_CST);
}

void loader_after_fork_in_child(void)
{
	__atomic_store_n(&looking, nested != 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&forking, 0, __ATOMIC_SEQ_CST);
}

static const struct lock_group looks = {
	.before_fork = loader_before_fork,
	.after_fork_in_parent = loader_after_fork_in_parent,
	.after_fork_in_child = loader_after_fork_in_child,
};
LOCK_DEFINE_GROUP(loader, LOCK_LOADER, &looks);
