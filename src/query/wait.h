/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of a query: the calls in which its thread may wait, from their beginning to their end.
 *
 * A wait is the part of a call in which the thread did not compute because it gave its processor up;
 * a read from the kernel's page cache is not a wait. It counts for each query that the thread is
 * inside. Each time that the waits of the thread have added up to another period, one sample of the
 * innermost query is taken; the first period of a thread begins at random. So the values of the
 * samples are the waited time, for any lengths of the waits.
 *
 * The thread of an open query or transaction is also measured outside calls (wire/outside.h). These waits are
 * in no query's sums, and their samples are of a type of their own.
 *
 * All of this is async-signal-safe and keeps errno.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fast_clock.h"
#include "collect/open_waits.h"
#include "handler/outside.h"
#include "handler/running.h"
#include "handler/thread.h"
#include "query/cpu_clock.h"
#include "query/turn.h"
#include "queryprof.h"

struct wait_call {
	struct thread *thread; /* NULL: nothing is measured */
	struct fast_moment start;
	uint64_t known_ns;                 /* the newest time that the thread knew then, */
	uint64_t cpu_read_ns, cpu_from_ns; /* its CPU clock as it was read last, */
	uint64_t waited_ns;                /* how much it had waited, */
	uint64_t turn;                     /* and its newest turn */
	enum wait_cause cause;
	const void *caller;
};

/* A call was not a wait if the thread's turn has not ended (turn.h). Otherwise, a call shorter than the first
 * was not a wait either, because a switch to another thread and back takes longer. Up to the second,
 * the kernel's counter shows whether there was a wait; it is read if a wait is likely, and in traces, whose
 * spans are equally short, because it is too expensive for each cached page. Only a mutex that another thread
 * held is always a wait. */
#define WAIT_LEAST_NS 1000
#define WAIT_SHORT_NS 10000

/* The same in units of slightly less than half a millisecond: a wait found to be shorter needs no time. */
#define WAIT_LEAST_HALVES 10
#define WAIT_SHORT_HALVES 7

/* The calling thread's slot while it is inside a query, else NULL. */
static inline struct thread *wait_thread_inside(void)
{
	struct thread *thread = thread_current;

	return __builtin_expect(thread && thread->nesting, 1) ? thread : NULL;
}

/* `thread`, which is in no query, if one is open or a transaction, else NULL. */
struct thread *wait_thread_outside(struct thread *thread);

/* The calling thread's slot while its waits are measured, else NULL. */
static inline struct thread *wait_thread(void)
{
	struct thread *thread = thread_current;

	if (__builtin_expect(thread && thread->nesting, 1))
		return thread;
	/* Relaxed: a change takes effect at a later wait. */
	return thread && __atomic_load_n(&outside_is_on, __ATOMIC_RELAXED) ? wait_thread_outside(thread)
	                                                                   : NULL;
}

/* A run of this thread ends, on the calling thread: a wait that a longjmp left is over. */
static inline void wait_run_ends(const struct thread *thread)
{
	if (__builtin_expect(thread == thread_current && thread->waiting->since != 0, 0))
		__atomic_store_n(&thread->waiting->since, 0, __ATOMIC_RELAXED);
}

/* The calling thread is about to wait for another query than before. */
void wait_describe(struct thread *thread);

/* `thread`: wait_thread(), not NULL. `caller`: of the host's function. */
static inline __attribute__((always_inline)) void wait_begin_of(struct wait_call *call, struct thread *thread,
                                                                enum wait_cause cause, const void *caller)
{
	struct wait_now *waiting = thread->waiting;
	const struct fast_moment start = fast_clock_moment();

	call->thread = thread;
	call->start = start;
	call->known_ns = thread->clock.newest;
	call->cpu_read_ns = thread->cpu_read_ns;
	call->cpu_from_ns = thread->cpu_from_ns;
	call->waited_ns = thread->wait.waited_ns;
	call->turn = thread->wait.turn;
	call->cause = cause;
	call->caller = caller;
	if (__builtin_expect(waiting->query != thread_newest_query(thread), 0))
		wait_describe(thread);
	waiting->caller = caller;
	__atomic_store_n(&waiting->cause, cause, __ATOMIC_RELAXED);
	__atomic_store_n(&waiting->scale, start.scale, __ATOMIC_RELAXED);
	/* Release: pairs with the thread that reads it. */
	__atomic_store_n(&waiting->since, start.at, __ATOMIC_RELEASE);
}

/* Inlined into the replacement of the host's function. */
static inline __attribute__((always_inline)) void wait_begin(struct wait_call *call, struct thread *thread,
                                                             enum wait_cause cause)
{
	wait_begin_of(call, thread, cause, __builtin_return_address(0));
}

/* The call has ended, and maybe the turn in which it began. It was a wait if it is about a mutex, or long;
 * otherwise possibly, if `is_likely`. `file`: its descriptor, -1: none. */
void wait_end_switched(const struct wait_call *call, int file, const void *mutex, bool is_likely);

/* If a host switches stacks inside its own function, that may be another thread. */
static inline bool wait_ends_here(const struct wait_call *call)
{
	if (__builtin_expect(!call->thread || call->thread != thread_current, 0))
		return false;
	__atomic_store_n(&call->thread->waiting->since, 0, __ATOMIC_RELAXED);
	return true;
}

/* In any case a wait. */
static inline __attribute__((always_inline)) void wait_end_mutex(const struct wait_call *call,
                                                                 const void *mutex)
{
	if (wait_ends_here(call))
		wait_end_switched(call, -1, mutex, true);
}

/* Maybe a wait, and what the call is for if `is_likely`; `file` as in wait_end_switched(). Most are over
 * without the time: if the turn has not ended, the thread has kept its processor. */
static inline __attribute__((always_inline)) void wait_end_call(const struct wait_call *call, int file,
                                                                bool is_likely)
{
	if (wait_ends_here(call) && __builtin_expect(!turn_goes_on(call->thread, call->turn), 0))
		wait_end_switched(call, file, NULL, is_likely);
}

/* One more of `sum`, of `bytes` bytes, which the next sum counts, for each query that the thread is inside
 * of. */
void wait_count_around(const struct thread *thread, enum wait_sum sum, uint64_t bytes);

/* The same, quickly where there is only one. */
static inline __attribute__((always_inline)) void wait_count(const struct wait_call *call, enum wait_sum sum,
                                                             uint64_t bytes)
{
	const struct thread *thread = call->thread;
	const struct thread_wait *wait = &thread->wait;
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

	if (__builtin_expect(sp > wait->frame || sp < thread->stack.start ||
	                             frame_return_address(wait->frame) != wait->frame_return,
	                     0)) {
		wait_count_around(thread, sum, bytes);
		return;
	}
	wait->sums[sum]++;
	wait->sums[sum + 1] += bytes;
}

/* The object that a mutex of SQLite guards, and the function that identifies the mutexes of connections. */
void wait_add_mutex(const void *mutex, enum wait_object object);
void wait_set_connections(bool (*has_mutex)(const void *mutex));

/* Locks a held mutex for a thread outside queries: calls `lock` once with the mutex and the
 * caller, inside a run if the mutex deserves one, and returns the result. NULL: there is no such
 * function yet. */
typedef int wait_lock_outside(pthread_mutex_t *mutex, const void *caller,
                              int (*lock)(pthread_mutex_t *mutex, const void *caller));
void wait_set_lock_outside(wait_lock_outside *lock_outside);
wait_lock_outside *wait_get_lock_outside(void);

/* The wait of a thread at this moment. */
struct wait_view {
	const char *cause, *object; /* "": it does not wait; of a lock only */
	uint64_t ns;                /* up to now */
	uint32_t holder_session, holder_process, holder_thread;
};

/* The wait of the thread with this id, in a query's call that began at `entered_ns`. Any thread. */
struct wait_view wait_inspect(uint32_t thread_id, uint64_t entered_ns);
