/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of a query: the calls in which its thread may wait, from their beginning to
 * their end.
 *
 * A wait is the part of a call in which the thread did not compute because it gave its processor
 * up: a read that finds its page in the kernel's cache is no wait. It counts for each query that the thread
 * is inside of, and one sample of the innermost one is taken each time that the waits of the thread have come
 * to another period; the first period of a thread begins at random. So the values of the samples are the time
 * that was waited, whatever the lengths of the waits.
 *
 * Async-signal-safe, all of it; keeps errno.
 */
#ifndef QUERYPROF_QUERY_WAIT_H
#define QUERYPROF_QUERY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fast_clock.h"
#include "handler/thread.h"
#include "query/cpu_clock.h"
#include "queryprof.h"
#include "sampler/open_waits.h"

struct wait_call {
	struct thread *thread; /* NULL: nothing is measured */
	uint64_t start_ns;
	uint64_t cpu_ns;    /* the thread's CPU clock then */
	uint64_t waited_ns; /* and what it had waited */
	enum wait_cause cause;
	const void *caller;
	const void *mutex; /* NULL: it is about none */
};

/* A call that took no longer than the first was not a wait: a switch to another thread and back takes
 * longer. Up to the second the kernel is asked whether there was one where that is likely, and in
 * traces, whose spans are as short; it is not worth its price for each page that is read from the
 * kernel's cache. Only a mutex that another thread had was waited for in any case. */
#define WAIT_LEAST_NS 1000
#define WAIT_SHORT_NS 10000

/* Whether the calling thread is inside a query. */
static inline bool wait_is_measured(void)
{
	const struct thread *thread = thread_current;

	return __builtin_expect(thread && thread->nesting, 0);
}

/* A run of this thread ends, on the calling one: a wait that a longjmp left is over. */
static inline void wait_run_ends(const struct thread *thread)
{
	if (__builtin_expect(thread == thread_current && thread->waiting->since_ns != 0, 0))
		__atomic_store_n(&thread->waiting->since_ns, 0, __ATOMIC_RELAXED);
}

/* Inlined into what stands for the host's function. */
static inline __attribute__((always_inline)) void wait_begin(struct wait_call *call, enum wait_cause cause)
{
	struct thread *thread = thread_current;

	call->thread = NULL;
	if (__builtin_expect(!thread || !thread->nesting, 1))
		return;
	*call = (struct wait_call){ .thread = thread,
		                    .start_ns = fast_clock_ns(&thread->clock),
		                    .waited_ns = thread->wait.waited_ns,
		                    .cause = cause,
		                    .caller = __builtin_return_address(0) };
	call->cpu_ns = cpu_clock_estimate(thread, call->start_ns);
	if (__builtin_expect(thread->waiting->query != thread_newest_query(thread), 0))
		open_waits_describe(thread);
	thread->waiting->caller = call->caller;
	__atomic_store_n(&thread->waiting->cause, cause, __ATOMIC_RELAXED);
	/* Release: with who looks. */
	__atomic_store_n(&thread->waiting->since_ns, call->start_ns, __ATOMIC_RELEASE);
}

/* The call is over, after `took_ns`. `file`: the descriptor that it was about, -1: none. */
void wait_note(const struct wait_call *call, uint64_t took_ns, int file);

/* The same of a call that was short: maybe it was no wait. */
void wait_note_short(const struct wait_call *call, uint64_t took_ns, int file);

/* One more of `sum`, of `bytes` bytes. */
void wait_count(const struct wait_call *call, enum wait_sum sum, uint64_t bytes);

/* How long the call took. `call` is one that is measured. */
static inline uint64_t wait_took(const struct wait_call *call)
{
	struct thread *thread = call->thread;
	uint64_t now = fast_clock_ns(&thread->clock);

	__atomic_store_n(&thread->waiting->since_ns, 0, __ATOMIC_RELAXED);
	return (int64_t)(now - call->start_ns) > 0 ? now - call->start_ns : 0;
}

/* In any case a wait. */
static inline __attribute__((always_inline)) void wait_end(const struct wait_call *call)
{
	/* Where a host switches stacks inside of its own function, that may be another thread. */
	if (call->thread && call->thread == thread_current)
		wait_note(call, wait_took(call), -1);
}

/* Maybe a wait, and what the call is for if `is_likely`; `file` as in wait_note(). */
static inline __attribute__((always_inline)) void wait_end_call(const struct wait_call *call, int file,
                                                                bool is_likely)
{
	uint64_t took;

	if (!call->thread || call->thread != thread_current)
		return;
	took = wait_took(call);
	if (took >= WAIT_SHORT_NS)
		wait_note(call, took, file);
	else if (__builtin_expect(took >= WAIT_LEAST_NS, 0) && (is_likely || qp_span_here))
		wait_note_short(call, took, file);
}

/* What a mutex of SQLite's guards, and who knows those of connections. */
void wait_add_mutex(const void *mutex, enum wait_object object);
void wait_set_connections(bool (*has_mutex)(const void *mutex));

/* What a thread waits for at this moment. */
struct wait_view {
	const char *cause, *object; /* "": it does not wait; of a lock alone */
	uint64_t ns;                /* up to now */
	uint32_t holder_session, holder_process, holder_thread;
};

/* Of the thread with this id, inside a query's call that began at `entered_ns`. Any thread. */
struct wait_view wait_look(uint32_t thread_id, uint64_t entered_ns);

#endif
