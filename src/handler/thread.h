/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the handler knows of the thread that it runs on.
 *
 * One slot a sampled thread, reached through one initial-exec thread-local
 * pointer, so that the handler never touches dynamic TLS. Slots come from mmap,
 * are recycled and never unmapped: a late signal always finds readable memory.
 *
 * Who writes: only the owning thread and the handler that interrupts it. Between
 * those two, ordinary loads and stores in program order are enough; the fields
 * that the handler reads are volatile so that the compiler keeps that order.
 */
#ifndef QUERYPROF_HANDLER_THREAD_H
#define QUERYPROF_HANDLER_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fast_clock.h"
#include "handler/labels.h"
#include "base/wait.h"
#include "handler/ledger.h"
#include "handler/record.h"
#include "handler/unwind/unwind.h"

struct ring;
struct opcode_places;

/* Keeps the compiler from moving what the handler reads across this point; the handler
 * runs on the same thread, so the processor needs no fence. */
#define HANDLER_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* What a thread's timers go by. */
enum timer_clock {
	TIMER_CPU,  /* of the thread */
	TIMER_REAL, /* CLOCK_MONOTONIC */
	TIMER_CLOCKS,
};

/* Counters of one run of a query that its samples feed. Memory is never
 * unmapped. Written with relaxed atomics: a run may have several threads. */
struct query_counts {
	struct run_start start; /* its `state` is atomic, with release and acquire */
	uint64_t samples[TRACE_TYPES];
	uint64_t weights[TRACE_TYPES];
	uint64_t dropped;
	uint64_t truncated;
	uint64_t worker_cpu_ns; /* not the handler's: CPU time of its worker threads */
	uint64_t labels;        /* the number of the query's own label set, 0: none */
	/* A SQLite statement, and where its running opcode is found (opcode.h); NULL: not known. */
	const void *statement;
	const struct opcode_places *opcodes;
	uint64_t worker_wait_ns; /* atomic; not the handler's: what its worker threads waited */
	uint64_t cost_ns;        /* what its samples took */
	bool has_threads;        /* several have the sums, which are atomic, and zero at first */
	bool has_waits;          /* else the sums are of an earlier run */
	uint64_t waits[WAIT_SUMS];
};

/* What a sample is tagged with while a query runs on its thread. */
struct query_tag {
	uint64_t number; /* of the push, unique on the slot */
	bool ended;      /* atomic: the place is free. Another thread may end what began here */
	struct query_key key;
	uint64_t period_ns[TIMER_CLOCKS]; /* 0: this query takes no such samples */
	uint64_t off_cpu_period_ns;       /* of its waits' samples */
	struct query_counts *counts;      /* never NULL */
	/* The stack frame of the call that pushed the tag, and its return address: the query
	 * runs inside it, see running.h. 0: no such test. */
	uintptr_t frame, frame_return;
	/* For hosts whose steps cannot be hooked: the query runs only while the owner
	 * of its connection's mutex is this thread. Points to a cell in memory that is
	 * never unmapped, which holds the address of the owner's thread id, or NULL once
	 * the connection has gone (the query then does not run). NULL: no such test. */
	const volatile int *const volatile *mutex_owner;
};

/* Queries that one thread can have with tags of their own; what comes on top of them is
 * counted to the innermost of them. */
#define QUERY_NESTING 16

/* How a timer is armed is told in timer.h. */
struct thread_timer {
	/* Atomic: the kernel's number of the timer, and the signal that it sends, as word_of()
	 * of sampler/timers.c packs them; 0: there is none, and the signal alone: the shared timer
	 * visits it (sampler/shared_timer.h). Other threads read it. */
	uint64_t kernel;
	uint64_t lent_ns;    /* atomic: what a signal of the shared timer stands for */
	volatile bool armed; /* cleared by the handler when it disarms */
	bool asks;           /* not armed so that the next query asks for one; visited until then */
	uint64_t period_ns;
	uint64_t grid_ns; /* a point of the timer's grid on its clock */
	/* The clock when the timer was armed, until its first signal; then 0. Only where the
	 * clock is looked at in ticks. */
	volatile uint64_t armed_ns;
	uint64_t waits;           /* of the thread until then, see sys_waits() */
	uint64_t idle_ns;         /* periods without a query, since one was last seen to run */
	uint64_t idle_max_ns;     /* the timer is disarmed after so many */
	bool whole;               /* the grid began with the thread, see timer.h */
	uint64_t told;            /* points at which it fired; of a whole timer only */
	uint32_t stretch;         /* periods from one signal to the next, see timer.h */
	uint32_t rounding;        /* of the stretch, below TIMER_STRETCH_PARTS; for ever */
	bool changed;             /* to another stretch, and no signal since */
	uint32_t slowed;          /* fires at every 2^slowed-th point only, see timer.h */
	uint32_t behind, in_time; /* how many came late of late, and in time since the last of them */
};

static inline bool timer_exists(const struct thread_timer *timer)
{
	return __atomic_load_n(&timer->kernel, __ATOMIC_RELAXED) >> 63 != 0;
}

static inline bool timer_is_shared(const struct thread_timer *timer)
{
	return !timer_exists(timer) && __atomic_load_n(&timer->kernel, __ATOMIC_RELAXED) != 0;
}

/* Of a timer that exists. */
static inline int timer_id(const struct thread_timer *timer)
{
	return (int)(uint32_t)__atomic_load_n(&timer->kernel, __ATOMIC_RELAXED);
}

/* A live stack: a signal whose cookie is the address of this makes the handler respond to
 * the newest request here. One requester at a time writes `requested`. A response stays as
 * it is until the next request, and a signal that finds its request responded to writes
 * nothing: it may come as late as it will. */
struct thread_response {
	uint32_t requested;  /* number of the newest request, never 0 */
	uint32_t given;      /* of the newest one responded to: what follows is the response */
	uint32_t on_way;     /* the signal that was sent and has not come yet, 0: none */
	uint32_t generation; /* of the code map */
	bool truncated;
	int depth;
	struct query_key query; /* that ran, 0: none */
	uint64_t trace[TRACE_MAX_FRAMES];
};

struct thread {
	/* Written by the thread itself, the timers by its handler, too. */
	struct {
		/* Up to `waiting`: what each step of a statement touches (base/way.h). */
		uint32_t id;               /* kernel thread id */
		volatile uint32_t nesting; /* of `queries`; 0: none runs */
		struct fast_clock clock;
		uint64_t cpu_read_ns;        /* the CPU clock as cpu_clock.c gave it last, */
		uint64_t cpu_read_at_ns;     /* on CLOCK_MONOTONIC */
		uint64_t seen_ns;            /* when cpu_clock.h last saw the thread run, on the same */
		uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC when that was read */
		uint64_t random;             /* state of the thread's random numbers */
		uint64_t newest_key;         /* time part of its newest query key */
		struct wait_now *waiting;    /* of this slot for ever */
		struct unwind_stack stack;
		struct thread_timer timers[TIMER_CLOCKS];

		/* The queries of this thread, in the order in which they began, with gaps where
		 * one ended before a later one. */
		struct query_tag queries[QUERY_NESTING];
		uint64_t pushes; /* ever, of all threads that had the slot */

		volatile bool arming;   /* the thread is in timers_arm() */
		bool named;             /* the ring has the thread's name */
		volatile bool name_due; /* set by the handler: the name is to be looked at again */
		char name[16];
		uintptr_t context_at;     /* its variable, see context.h; 0: none */
		uint64_t name_checked_ns; /* CLOCK_MONOTONIC_COARSE, as the next two */
		uint64_t retry_ns;        /* no timer is created before */
		uint64_t retry_pause_ns;  /* doubled at each refusal */
		uint64_t cpu_base_ns;     /* the CPU clock as the kernel gave it last, */
		uint64_t cpu_base_at_ns;  /* on CLOCK_MONOTONIC; 0: not yet */
		uint64_t cpu_tick_ns;     /* the newest tick at that time */
		uint64_t cpu_switches;    /* context switches of the thread until then */
		bool is_worker;           /* of a query whose own thread has the sums */
		struct wait_now own_wait; /* where there is no other place for it */
		struct thread_wait wait;
		struct thread_account account;
	};

	/* Written by the handler, or by what stands for it (sampler_take). */
	struct {
		volatile uint32_t is_running;
		volatile uint32_t done;             /* how often it has returned */
		uintptr_t frame;                    /* where the running one's stack frame is */
		uint64_t counters[LEDGER_COUNTERS]; /* never reset: slots are added up */
		uint64_t trace[TRACE_MAX_FRAMES];   /* of the sample that is being taken */
		struct labels labels;               /* and what it is under */
		struct trace_context context;
	} handler;

	/* Written by other threads, too: atomic. */
	struct {
		struct ring *ring;  /* NULL: nothing is recorded */
		uint32_t owner;     /* tid, 0: free; who clears it frees the slot */
		uint32_t index;     /* of the slot, for ever */
		uint32_t next_free; /* index + 1 of the next free slot, 0: none */
	};
	struct thread_response response; /* last: memory that few ever touch */
					 /* struct unwind_memo follows, unwind_memo_bytes of it */
};

/* Async-signal-safe, both, on the thread itself. What uses the code map does so between
 * them: sampler_quiesce() waits for it. False inside a handler of the same thread. */
bool thread_enter_handler(struct thread *thread, uintptr_t frame);
void thread_leave_handler(struct thread *thread);

/* Async-signal-safe. `thread` is the calling thread's slot, NULL if it has none: late and foreign
 * signals are counted apart then. */
void thread_count(struct thread *thread, enum ledger_counter which, uint64_t by);
extern uint64_t thread_slotless_counters[LEDGER_COUNTERS] __attribute__((visibility("hidden")));

struct unwind_memo *thread_memo(struct thread *thread);

/* The calling thread's slot, NULL while it is not registered. */
extern __thread struct thread *thread_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The span that runs on the calling thread, and how many samples fell into spans of the thread.
 * The thread writes the first, its handler the second. Not of the slot: src/span outlives it. */
struct span_current {
	volatile uint64_t id; /* 0: none */
	volatile uint64_t samples;
};
extern __thread struct span_current span_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* All slots that were ever made, by index, in blocks of zeroed memory that sampler/slots.c
 * adds. The count is atomic and stored behind the block. */
#define THREADS_PER_BLOCK 32u
#define THREAD_BLOCKS 4096u
extern char *thread_blocks[THREAD_BLOCKS] __attribute__((visibility("hidden")));
extern uint32_t thread_block_count __attribute__((visibility("hidden")));

/* Distance from one slot to the next in a block. */
size_t thread_slot_bytes(void);

/* Whether a signal with this si_code and cookie is ours: from a timer of any slot, past or
 * present, or a request for a stack to one. */
bool thread_owns_signal(int code, const void *cookie);

#endif
