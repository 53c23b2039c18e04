/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler's state of the thread that it runs on: one slot per sampled thread, reached through an
 * initial-exec thread-local pointer, so that the handler never touches dynamic TLS. Slots come from
 * mmap, are reused and never unmapped: a late signal always finds readable memory.
 *
 * The owning thread and the handler that interrupts it write; fields that others read are atomic.
 * Between thread and handler, loads and stores in program order suffice; the fields that the handler
 * reads are volatile so that the compiler keeps that order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/of_recorder.h"
#include "base/fast_clock.h"
#include "handler/labels.h"
#include "handler/unwind/unwind.h"
#include "wire/ledger.h"
#include "wire/outside.h"
#include "wire/query_tag.h"
#include "wire/timer_grid.h"
#include "wire/wait.h"

struct ring;
struct page_io;

/* Keeps the compiler from moving what the handler reads across this point; the handler
 * runs on the same thread, so the processor needs no fence. */
#define HANDLER_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* The maximum number of a thread's queries with tags of their own; further ones count for the
 * innermost of them. */
#define QUERY_NESTING 16

/* A live stack: a signal whose cookie is the address of this makes the handler respond to the
 * newest request here. One requester at a time writes `requested`. A response does not change
 * until the next request, and a signal whose request already has its response writes nothing,
 * however late it comes. */
struct thread_response {
	uint32_t requested;  /* number of the newest request, never 0 */
	uint32_t given;      /* of the newest one responded to: what follows is the response */
	uint32_t in_flight;  /* the signal that was sent and has not come yet, 0: none */
	uint32_t generation; /* of the code map */
	bool truncated;
	int depth;
	struct query_key query; /* that ran, 0: none */
	uint64_t addresses[STACK_FRAMES_MAX];
};

/* Bytes of a sample's optional fields at most. */
#define SAMPLE_FIELDS_MAX SAMPLE_FIELDS_BYTES(LABELS_MAX)

struct thread {
	/* Written by the thread itself, the timers by its handler, too. */
	struct {
		/* Up to `account`: what each step of a statement touches (base/hot_path.h). */
		uint32_t id;               /* kernel thread id */
		volatile uint32_t nesting; /* of `queries`; 0: none runs; see nesting_set() */
		struct fast_clock clock;
		uint64_t cpu_read_ns;        /* the CPU clock as cpu_clock.c gave it last, */
		uint64_t cpu_read_at_ns;     /* at this moment of CLOCK_MONOTONIC; */
		uint64_t cpu_from_ns;        /* until this one, of the same, it does not advance */
		uint64_t seen_ns;            /* when cpu_clock.h last saw the thread run, on the same */
		uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC when that was read */
		uint64_t random;             /* state of the thread's random numbers */
		uint64_t newest_key;         /* first word of its newest query key */
		uint64_t key_ms_ns;          /* when the ms began in which it was made, CLOCK_REALTIME, */
		uint64_t key_ms;             /* and what the keys of that ms begin with */
		struct wait_now *waiting;    /* of this slot for ever */
		struct thread_account account;
		struct unwind_stack stack;
		struct thread_timer timers[TIMER_CLOCKS];

		/* The queries of this thread, in the order in which they began, with gaps where
		 * one ended before a later one. */
		struct query_tag queries[QUERY_NESTING];
		uint64_t pushes; /* ever, of all threads that had the slot */

		volatile bool arming;   /* the thread is in timers_arm() */
		bool named;             /* atomic: the ring has the thread's name */
		volatile bool name_due; /* set by the handler: the name is to be checked again */
		char name[16];
		uintptr_t context_at;     /* its variable, see context.h; 0: none */
		uint64_t name_checked_ns; /* CLOCK_MONOTONIC_COARSE, as the next two */
		uint64_t retry_ns;        /* no timer is created before */
		uint64_t retry_pause_ns;  /* doubled at each refusal */
		uint64_t cpu_base_ns;     /* the CPU clock as the kernel gave it last, */
		uint64_t cpu_base_at_ns;  /* on CLOCK_MONOTONIC; 0: not yet */
		uint64_t cpu_tick_ns;     /* the newest tick at that time */
		uint64_t cpu_switches;    /* context switches of the thread until then */
		uint64_t cpu_turn;        /* the turn in which cpu_clock.c gave the CPU clock last */
		bool began_blocked;       /* atomic; it blocked the signal when it got the slot */
		bool is_worker;           /* of a query whose own thread has the sums */
		struct wait_now own_wait; /* if there is no other place for it */
		struct page_io *page_io;  /* atomic; of this slot for ever; NULL: not made yet */
		struct thread_wait wait;
		struct outside outside;
	};

	/* Written by the handler, or its replacement (sampler_record_observed()). */
	struct {
		volatile uint32_t is_running;
		volatile uint32_t done;             /* how often it has returned */
		uintptr_t frame;                    /* the running one's stack frame */
		uint64_t counters[LEDGER_COUNTERS]; /* never reset: slots are added up */
		/* The record of the sample that is being taken, and its labels. */
		uint64_t draft[sizeof(struct sample_record) / 8 + STACK_FRAMES_MAX + SAMPLE_FIELDS_MAX / 8];
		struct labels labels;
		struct trace_context context;
	} handler;

	/* Written by other threads, too: atomic. */
	struct {
		struct ring *ring;  /* NULL: nothing is recorded */
		uint32_t owner;     /* tid, 0: free; the thread that clears it frees the slot */
		uint32_t index;     /* of the slot, for ever */
		uint32_t next_free; /* index + 1 of the next free slot, 0: none */
	};
	struct thread_response response; /* last: memory that few ever touch */
					 /* struct unwind_memo follows, unwind_memo_bytes of it */
};

/* Both are async-signal-safe, on the thread itself. Code that uses the code map runs between
 * them: sampler_quiesce() waits for it. False inside a handler of the same thread. */
bool thread_enter_handler(struct thread *thread, uintptr_t frame);
void thread_leave_handler(struct thread *thread);

/* Async-signal-safe. `thread` is the calling thread's slot, NULL if it has none: late and foreign
 * signals are counted separately then. */
void thread_count(struct thread *thread, enum ledger_counter which, uint64_t by);
extern uint64_t thread_slotless_counters[LEDGER_COUNTERS] __attribute__((visibility("hidden")));

static inline struct unwind_memo *thread_memo(struct thread *thread)
{
	return (struct unwind_memo *)(thread + 1);
}

/* The calling thread's slot, NULL while it is not registered. */
ADDRESS_OF_RECORDER(struct thread *, thread_current);
#ifdef QUERYPROF_REST
#define thread_current (*thread_current_address())
#else
extern __thread struct thread *thread_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
#endif

/* The span that runs on the calling thread, and how many samples fell into spans of the thread.
 * The thread writes the first, its handler the second. Not of the slot: src/span outlives it. */
struct span_current {
	volatile uint64_t id; /* 0: none */
	volatile uint64_t samples;
};
extern __thread struct span_current span_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* All slots that were ever made, by index, in blocks of zeroed memory that collect/slots.c adds.
 * The count is atomic and stored after the block. */
#define THREADS_PER_BLOCK 32u
#define THREAD_BLOCKS 4096u
extern char *thread_blocks[THREAD_BLOCKS] __attribute__((visibility("hidden")));
extern uint32_t thread_block_count __attribute__((visibility("hidden")));

/* Distance from one slot to the next in a block. */
size_t thread_slot_bytes(void);

/* Whether a signal with this si_code and cookie belongs to queryprof: from a timer of any slot,
 * past or present, or a request for a stack to one. */
bool thread_owns_signal(int code, const void *cookie);
