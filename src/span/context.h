/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context is a thread's part of a trace: from qp_trace_begin(), qp_span_join() or qp_span_follow()
 * to qp_trace_end(). Contexts nest. A context's spans are in chunks, arrays of entries that do not
 * move; the newest one takes new spans. A full chunk is handed over to the ring when all of its spans
 * have ended, and waits after the newest until then. So an open span is always where its number
 * indicates, however many there are.
 *
 * All of it belongs to the thread: no other thread reads or writes it, nor does the handler, which
 * uses only span_current. A host's signal handler may wait and so add a span (wait.h): while chunks
 * change hands qp_span_here is NULL. It may also end the process, or fork: a context whose chunks
 * change hands at that moment is abandoned, and one that begins or ends is not in the thread's list.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/fast_clock.h"
#include "handler/thread.h"
#include "queryprof.h"
#include "span/chunk.h"
#include "wire/span_record.h"

#define SPAN_CONTEXTS 16

struct qp_span_context {
	struct span_chunk *chunk; /* the newest; NULL: nothing is recorded */
	struct fast_clock *clock;
	struct span_link of; /* the trace, and the parent of the outermost spans */
	struct span_link *links;
	uint32_t link_count;
	uint32_t flags; /* enum span_batch_flags */
	uint64_t outer; /* span_current.id of the context around it */
	uint64_t began_ns, samples, dropped;
	uint32_t held;     /* chunks after the newest */
	bool handed_over;  /* something of it */
	bool is_elsewhere; /* other threads may have part in the trace */
	bool is_chosen;    /* to be kept, whatever it will be like */
	bool is_over;      /* handed over as the process was about to end; it records no more */
};

struct span_thread {
	struct fast_clock clock; /* for what the thread records at its very end */
	uint64_t next;           /* number of the next chunk's first entry */
	uint64_t realtime_offset;
	uint32_t id, depth;
	struct span_chunk *unused;
	const struct qp_span_context *changing; /* its chunks change hands; NULL: none's do */
	struct qp_span_context contexts[SPAN_CONTEXTS];
};

/* As an entry has it; `parent` 0: there is none. A parent that is too far away also counts as
 * none: a thread may have begun millions of traces inside it. A number is never as low as a
 * distance. */
static inline uint32_t span_distance(uint64_t number, uint64_t parent)
{
	uint64_t distance = number - parent;

	return distance > UINT32_MAX ? 0 : (uint32_t)distance;
}

/* The calling thread's, made at the first call. NULL: no memory. */
struct span_thread *span_thread_get(void);

/* The number for a span that is in no chunk. The thread has a struct span_thread. */
uint64_t span_thread_number(struct thread *slot);

/* Begins a context of this trace, `links` copied. QP_OK, QP_NOMEM, QP_INVALID: too deep. */
int context_begin(const struct span_link *of, const struct span_link *links, uint32_t link_count,
                  uint32_t flags);

/* Ends the innermost one; does nothing if there is none. */
void context_end(void);

/* The number of the calling thread's contexts; and ends those beyond a number. */
uint32_t context_depth(void);
void context_end_to(uint32_t depth);

/* For _exit() and exec: hands over everything of the calling thread, once. If the process
 * continues because exec failed, the contexts record no more and wait for their context_end().
 * Async-signal-safe: frees nothing and waits for no lock. */
void contexts_before_end(void);

/* The entry with this number, in any context of the thread; NULL: none. `*chunk` has it. */
struct span_entry *context_find(uint64_t number, struct span_chunk **chunk);

/* Whether qp_span_here has the entry with this number. */
bool context_has(uint64_t number);

/* The time, by the clock of the thread's contexts, of which there is one. */
uint64_t context_now_ns(void);

/* Space for `count` consecutive entries. NULL: there is none, which is counted. */
struct span_entry *context_room(struct qp_span_context *context, uint32_t count, uint64_t *number);

/* A span that has ended and has no space in the newest chunk: the ring gets it immediately, as the
 * child of the running one. Async-signal-safe. */
void context_put_alone(struct qp_span_context *context, const struct span_entry *entry);

/* A chunk's span has ended that was open. */
void context_ended(struct span_chunk *chunk);

/* A statement's span in the chunk is not one: its children that were not handed over yet belong to
 * its parent. */
void context_remove_span(struct span_chunk *chunk, struct span_entry *span);
