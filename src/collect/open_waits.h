/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits that have not ended, in memory that another process also holds (handover/shared_ring.h). A thread
 * that never returns from a call has no sample of it. When the process has ended, the other process writes
 * that sample, and the data of the query.
 * The thread keeps its wait there in any case (wire/wait.h). It records the waiting query at the query's
 * first wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/thread.h"
#include "wire/wait.h"

struct ring;

size_t open_waits_bytes(void);

/* --- in the process that waits ------------------------------------------------------------------ */

/* `memory`: open_waits_bytes() of zeros, which stay. Before there are threads; in a forked child
 * again. */
void open_waits_attach(void *memory);

/* In a forked child that gets no such memory: the waits are in the threads' slots again. */
void open_waits_detach_in_child(void);

/* The memory in which the thread of this slot keeps its wait. */
struct wait_now *open_waits_find(struct thread *thread);

/* The lower half of the key of the newest query that the thread is inside; 0: none. */
static inline uint64_t thread_newest_query(const struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	if (__builtin_expect(nesting == 1, 1))
		return thread->queries[0].key.lo;
	return nesting ? thread->queries[(nesting < QUERY_NESTING ? nesting : QUERY_NESTING) - 1].key.lo : 0;
}

/* The calling thread is about to wait for another query than before. Async-signal-safe. */
void open_waits_describe(struct thread *thread);

/* The process is about to become another program: no wait lasts longer. */
void open_waits_before_exec(void);

/* Adds code of SQLite. A wait in other code belongs to a function of the host. Until there is such code,
 * no distinction is made. */
void open_waits_add_engine(uintptr_t start, uintptr_t end);
bool open_waits_is_hosts(const void *caller);

/* --- in the other process, when this one is gone ---------------------------------------------------- */

/* When the process ended, or became another program: CLOCK_MONOTONIC. */
uint64_t open_waits_until(const void *memory);

/* Whether a thread waited. */
bool open_waits_has_remains(const void *memory);

/* A thread that waited for the lock of a database. */
struct open_lock {
	uint32_t thread_id;
	uint64_t wait_ns;
};

/* The next wait from number `*from` on; advances `*from` past it. False: there is no further one.
 * Before open_waits_hand_over(). */
bool open_waits_next_lock(const void *memory, uint32_t *from, struct open_lock *lock);

/* Bytes of the part that is in use, by the first open_waits_front_bytes() of them. */
size_t open_waits_front_bytes(void);
size_t open_waits_used_bytes(const void *memory);

/* Clears in the copy the entries that differ between an earlier copy and a later one, because each may be
 * a mixture of two waits. Returns their number. */
uint32_t open_waits_keep_steady(void *copy, const void *earlier, const void *later);

/* The wait of the thread that runs the run with this key, in a copy. */
struct open_wait_view {
	uint32_t thread_id;
	uint32_t cause;   /* enum wait_cause, of the call that it is inside of; 0: it waits in none */
	uint32_t caused;  /* of a user function: its cause */
	uint64_t wait_ns; /* in the call, until now */
	uint32_t lock;    /* that SQLite requested last and was refused, enum wait_object; 0: none */
	uint64_t lock_since_ns;
	uint32_t holder_session, holder_process, holder_thread; /* 0: not known */
};
bool open_waits_find_run(const void *memory, struct query_key key, struct open_wait_view *view);

/* Writes the waits into the ring, which counts the samples for which it has no space. generation: of the
 * newest code map. */
void open_waits_hand_over(void *memory, struct ring *ring, uint32_t generation);
