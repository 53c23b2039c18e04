/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running queries of a thread.
 */
#ifndef QUERYPROF_SAMPLER_PUSH_H
#define QUERYPROF_SAMPLER_PUSH_H

#include "handler/thread.h"

/* A query starts on the calling thread. The tag is copied, but for its number. Arms the
 * timers that the tag's periods ask for. Returns the number for sampler_remove(); 0: the
 * thread has no room for another tag. */
uint64_t sampler_push(struct thread *thread, const struct query_tag *tag);

/* The query that was pushed under `number` has ended, on its thread or, when a coroutine
 * took it along, on another one. Queries end in any order. */
void sampler_remove(struct thread *thread, uint64_t number);

/* The newest query of the calling thread has ended. */
void sampler_pop(struct thread *thread);

/* The same for a thread that works for one query from its beginning to its end: its
 * samples then stand for all of its CPU time, however short it lives. */
void sampler_push_worker(struct thread *thread, const struct query_tag *tag);
void sampler_pop_worker(struct thread *thread);

#endif
