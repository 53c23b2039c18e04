/*
 * The stack of running queries of a thread.
 */
#ifndef QUERYPROF_SAMPLER_PUSH_H
#define QUERYPROF_SAMPLER_PUSH_H

#include "handler/thread.h"

/* Starts and ends a query on the calling thread; strictly nested. The tag is
 * copied. sampler_push() arms the timers that the tag's periods ask for. */
void sampler_push(struct thread *thread, const struct query_tag *tag);
void sampler_pop(struct thread *thread);

/* The same for a thread that works for one query from its beginning to its end: its
 * samples then stand for all of its CPU time, however short it lives. */
void sampler_push_worker(struct thread *thread, const struct query_tag *tag);
void sampler_pop_worker(struct thread *thread);

/* The tag of the innermost running query, NULL when there is none. */
const struct query_tag *sampler_top(const struct thread *thread);

#endif
