/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of threads, from a thread's first query to its end.
 */
#pragma once

#include "collect/state.h"
#include "handler/thread.h"

/* The calling thread's slot, made at the first call. NULL if memory runs out, on queryprof's own
 * threads and after sampler_stop(). */
struct thread *sampler_find_thread(void);

static inline struct thread *sampler_thread(void)
{
	struct thread *thread = thread_current;

	if (__builtin_expect(thread && sampler_ring(), 1))
		return thread;
	return sampler_find_thread();
}

/* Each thread that gets a slot calls this then, outside its query. */
void threads_notify(void (*call)(void));

/* Each thread that gets a slot while another one has one calls this then, outside its query. */
void threads_notify_company(void (*call)(void));

/* The calling thread belongs to queryprof: never sampled, never logged. */
void sampler_exclude_thread(void);

/* From now on it works for the host. */
void sampler_include_thread(void);

/* Detects what nothing reports: frees slots and timers of threads that ended without running
 * destructors; gives up a signal that the host has set. The flusher calls it periodically. A call
 * checks at most a thousand threads, and the next call continues. */
void sampler_reap(void);

/* Makes the key whose destructor frees slots. 0 or an errno value. */
int threads_init(void);

/* Hands the ring (NULL: none) to all slots. */
void threads_set_ring(struct ring *ring);

/* Writes the thread's name to the ring if it is new; at most once a second. Only the thread
 * itself, when it is registered and, after each signal, with its next query. */
void threads_publish_name(struct thread *thread);

/* After sampler_stop() and sampler_quiesce(): no thread has a timer any more. */
void threads_delete_timers(void);

/* In a forked child: only the calling thread's slot is left. */
void threads_after_fork(void);
