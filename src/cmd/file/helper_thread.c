/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of blocks of items. Two semaphores count the free and the full blocks. The caller waits for a free
 * block, the thread for a full one.
 */
#include "cmd/file/helper_thread.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

struct helper_thread {
	size_t item_size, items_max, blocks;
	bool (*work)(void *context, const void *first, size_t count);
	void *context;
	pthread_t thread;
	bool has_thread;
	sem_t free, full;
	size_t *counts;        /* of items, by block; 0: the end */
	size_t filled, worked; /* blocks that the caller filled, the thread finished */
	char *block;           /* being filled, with `count` items */
	size_t count;
	bool has_failed; /* atomic */
	int error;       /* of the work */
	_Alignas(max_align_t) char items[];
};

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore)) /* EINTR */
		;
}

static char *block_at(struct helper_thread *thread, size_t number)
{
	return &thread->items[number % thread->blocks * thread->items_max * thread->item_size];
}

static void work_on_next(struct helper_thread *thread)
{
	const size_t at = thread->worked++;

	errno = 0;
	if (thread->has_failed || /* only this thread sets it */
	    thread->work(thread->context, block_at(thread, at), thread->counts[at % thread->blocks]))
		return;
	thread->error = errno;
	/* Relaxed, because a reader of `error` has waited for the block. */
	__atomic_store_n(&thread->has_failed, true, __ATOMIC_RELAXED);
}

static void *run(void *of)
{
	struct helper_thread *thread = of;

	for (;;) {
		wait_for(&thread->full);
		if (!thread->counts[thread->worked % thread->blocks])
			return NULL;
		work_on_next(thread);
		sem_post(&thread->free);
	}
}

struct helper_thread *helper_thread_start(size_t item_size, size_t items, size_t blocks,
                                          bool (*work)(void *context, const void *first, size_t count),
                                          void *context)
{
	struct helper_thread *thread = calloc(1, sizeof(*thread) + blocks * items * item_size);
	sigset_t all, before;

	if (!thread || !(thread->counts = calloc(blocks, sizeof(*thread->counts)))) {
		free(thread);
		return NULL;
	}
	thread->item_size = item_size;
	thread->items_max = items;
	thread->blocks = blocks;
	thread->work = work;
	thread->context = context;
	thread->block = thread->items;
	sem_init(&thread->free, 0, (unsigned)blocks - 1); /* one is being filled already */
	sem_init(&thread->full, 0, 0);
	sigfillset(&all); /* for the caller's threads only */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	thread->has_thread = pthread_create(&thread->thread, NULL, run, thread) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return thread;
}

/* Hands the block over, and waits for the next one. */
static void hand_over(struct helper_thread *thread)
{
	thread->counts[thread->filled++ % thread->blocks] = thread->count;
	if (thread->has_thread) {
		sem_post(&thread->full);
		wait_for(&thread->free);
	} else {
		work_on_next(thread);
	}
	thread->block = block_at(thread, thread->filled);
	thread->count = 0;
}

void *helper_thread_add(struct helper_thread *thread)
{
	if (thread->count == thread->items_max)
		hand_over(thread);
	/* Relaxed, because it may learn this one item later. */
	if (__atomic_load_n(&thread->has_failed, __ATOMIC_RELAXED))
		return NULL;
	return thread->block + thread->count++ * thread->item_size;
}

bool helper_thread_wait(struct helper_thread *thread)
{
	if (thread->count)
		hand_over(thread);
	for (size_t i = 1; thread->has_thread && i < thread->blocks; i++)
		wait_for(&thread->free);
	for (size_t i = 1; thread->has_thread && i < thread->blocks; i++)
		sem_post(&thread->free);
	errno = thread->error;
	return !__atomic_load_n(&thread->has_failed, __ATOMIC_RELAXED);
}

void helper_thread_end(struct helper_thread *thread)
{
	if (!thread)
		return;
	helper_thread_wait(thread);
	if (thread->has_thread) {
		thread->counts[thread->filled % thread->blocks] = 0;
		sem_post(&thread->full);
		pthread_join(thread->thread, NULL);
	}
	sem_destroy(&thread->free);
	sem_destroy(&thread->full);
	free(thread->counts);
	free(thread);
}
