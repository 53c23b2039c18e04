/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that look count themselves, and a fork() waits until none is left. A mutex would have an order with
 * the loader's lock: a host's callback of dl_iterate_phdr() may run a query, and a thread of ours that looks
 * waits for that callback.
 *
 * Also compiled into the preload, so without what the rest of base needs.
 */
#include "base/loader.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/lock.h"

/* A second. Counted, as a host may change what a clock shows. */
#define NAP_NS 100000
#define NAPS_MOST 10000

static uint32_t looking;         /* atomic: threads in dl_iterate_phdr() */
static uint32_t forking;         /* atomic: forks that wait for these, or are under way */
static __thread uint32_t nested; /* look-ups of this thread: a host's signal handler may come between */

static void nap(void)
{
	const struct timespec time = { .tv_nsec = NAP_NS };

	syscall(SYS_nanosleep, &time, NULL);
}

/* Sequentially consistent, as is loader_before_fork(): of a look-up and a fork that begin at the same moment
 * one sees the other. After a second it goes on: the fork waits no longer either. */
static void begin_look(void)
{
	for (int naps = 0; !nested; naps++) {
		__atomic_fetch_add(&looking, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST) || naps == NAPS_MOST)
			break;
		__atomic_fetch_sub(&looking, 1, __ATOMIC_SEQ_CST);
		nap();
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
	const uint32_t own = nested != 0;

	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	for (int naps = 0; __atomic_load_n(&looking, __ATOMIC_SEQ_CST) > own && naps < NAPS_MOST; naps++)
		nap();
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
