/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running queries of a thread.
 */
#pragma once

#include "base/hot_path.h"
#include "handler/running.h"
#include "handler/thread.h"
#include "timers/nesting.h"
#include "timers/timers.h"

/* A query starts on the calling thread. The tag is copied, except its number. Arms the timers that
 * the tag's periods need. Returns the number for sampler_remove(); 0: the thread has no space for
 * another tag. */
uint64_t sampler_push(struct thread *thread, const struct query_tag *tag);

/* Pushes again the tag that was pushed on this thread under `number` and removed, for another
 * call: the query's next row, or its next run, whose key is another. The thread is inside no
 * query. False: the place belongs to another one now. */
static inline bool sampler_push_again(struct thread *thread, uint64_t number, const struct query_key *key,
                                      const void *frame)
{
	struct query_tag *tag = &thread->queries[0];

	if (tag->number != number || nesting_has_ended(tag))
		return false;
	/* The handler looks at no place. */
	query_key_copy(&tag->key, key);
	tag->frame = (uintptr_t)frame;
	tag->frame_return = frame_return_address((uintptr_t)frame);
	HANDLER_BARRIER();
	/* As in sampler_push(): the handler finds the query before its timers are checked. */
	nesting_set(thread, 1);
	timers_follow(thread, tag);
	return true;
}

/* The query that was pushed under `number` has ended, on its thread or, if a coroutine moved it,
 * on another one. Queries end in any order. */
COLD_PATH void sampler_remove_among(struct thread *thread, uint64_t number);

static inline void sampler_remove(struct thread *thread, uint64_t number)
{
	/* The thread's only one, as nearly always. */
	if (__builtin_expect(thread->nesting == 1 && thread == thread_current &&
	                             thread->queries[0].number == number,
	                     1))
		nesting_set(thread, 0);
	else
		sampler_remove_among(thread, number);
}

/* The host may have changed the signal: the query that runs on the calling thread gets its samples
 * again immediately. In a child of vfork() this does nothing. */
void sampler_follow(void);

/* The newest query of the calling thread has ended. */
void sampler_pop(struct thread *thread);

/* The same for a thread that works for one query from its beginning to its end: its samples then
 * represent all of its CPU time, however short its life. */
void sampler_push_worker(struct thread *thread, const struct query_tag *tag);
void sampler_pop_worker(struct thread *thread);
