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

#include "handler/record.h"
#include "handler/unwind/unwind.h"

struct ring;

/* Counters of one run of a query that its samples feed. Memory is never
 * unmapped. Written with relaxed atomics: a run may have several threads. */
struct query_counts {
	uint64_t samples[TRACE_TYPES];
	uint64_t weights[TRACE_TYPES];
	uint64_t dropped;
	uint64_t truncated;
	uint64_t worker_cpu_ns; /* not the handler's: CPU time of its worker threads */
};

/* What a sample is tagged with while a query runs on its thread. */
struct query_tag {
	uint64_t number; /* of the push, unique on the slot */
	bool ended;      /* atomic: the place is free. Another thread may end what began here */
	struct query_key key, initial;
	uint64_t period_ns[TRACE_TYPES]; /* 0: this query takes no such samples */
	struct query_counts *counts;     /* never NULL */
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

/* See timer.h for how they are armed. */
struct thread_timer {
	int id;     /* kernel timer id, valid while created */
	int signal; /* that it sends, valid while created */
	volatile bool created;
	volatile bool armed;   /* cleared by the handler when it disarms */
	volatile bool probing; /* armed for one signal at the next kernel tick */
	uint64_t period_ns;
	uint64_t grid_ns; /* a point of the timer's grid on its clock */
	uint64_t gap_ns;  /* CPU time between two ticks, 0: not measured yet */
	uint64_t hit_ns;  /* the clock at the probe just before this one, 0: none */
	uint32_t probes;
	uint64_t between_ns;      /* since a query on the thread was last seen to run */
	bool whole;               /* counts from the thread's beginning to its end, see timer.h */
	uint64_t told;            /* points that signals stood for; of a whole one only */
	uint32_t slowed;          /* fires at every 2^slowed-th point only, see timer.h */
	uint32_t behind, in_time; /* how many came late of late, and in time since the last of them */
};

/* One stack, asked for from outside (src/sampler/stacks.c): a signal whose cookie is the
 * address of this makes the handler answer the newest question here. One asker at a
 * time writes `wanted`. An answer stays as it is until the next question, and a signal
 * that finds its question answered writes nothing: it may come as late as it will. */
struct thread_answer {
	uint32_t wanted;     /* number of the newest question, never 0 */
	uint32_t given;      /* of the newest one answered: what follows is the answer */
	uint32_t on_way;     /* number of the signal that was sent and has not come yet */
	uint32_t generation; /* of the code map */
	bool truncated;
	int depth;
	struct query_key query; /* that ran, 0: none */
	uint64_t trace[TRACE_MAX_FRAMES];
};

/* One a kind of sample_counter (sample.h). */
#define THREAD_COUNTERS 10

struct thread {
	uint32_t id; /* kernel thread id */
	struct unwind_stack stack;
	struct ring *ring; /* NULL: nothing is recorded */
	struct thread_timer timers[TRACE_TYPES];

	/* The queries of this thread, in the order in which they began, with gaps where one
	 * ended before a later one; 0: none. */
	volatile uint32_t nesting;
	struct query_tag queries[QUERY_NESTING];
	uint64_t pushes; /* ever, of all threads that had the slot */

	/* For whoever must know when the thread has left the handler: 1 while it runs;
	 * how often it has returned. */
	volatile uint32_t in_handler;
	volatile uint32_t handlers_done;
	uintptr_t handler_frame;            /* where the running one's stack frame is */
	uint64_t counters[THREAD_COUNTERS]; /* never reset: slots are added up */
	uint64_t trace[TRACE_MAX_FRAMES];

	/* src/sampler only, from here to the answer. */
	uint32_t owner;       /* atomic: tid, 0: free; who clears it frees the slot */
	uint32_t index;       /* of the slot, for ever */
	uint32_t next_free;   /* index + 1 of the next free slot, 0: none */
	volatile bool arming; /* the thread is in timers_arm() */
	bool named;           /* the ring has the thread's name */
	char name[16];
	uint64_t name_checked_ns;    /* CLOCK_MONOTONIC_COARSE, as the next two */
	uint64_t retry_ns;           /* no timer is created before */
	uint64_t retry_pause_ns;     /* doubled at each refusal */
	uint64_t random;             /* state of the thread's random numbers */
	uint64_t newest_key;         /* time part of its newest query key */
	uint64_t cpu_read_ns;        /* the CPU clock when it was read last, */
	uint64_t cpu_read_at_ns;     /* on CLOCK_MONOTONIC; see query.c */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC at that time */

	struct thread_answer answer; /* last: memory that few ever touch */
				     /* struct unwind_memo follows, unwind_memo_bytes of it */
};

struct unwind_memo *thread_memo(struct thread *thread);

/* The calling thread's slot, NULL while it is not registered. */
extern __thread struct thread *thread_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* All slots that were ever made, by index, in blocks that src/sampler maps. */
#define THREADS_PER_BLOCK 32u
#define THREAD_BLOCKS 4096u

/* Distance from one slot to the next in a block. */
size_t thread_slot_bytes(void);

/* Adds a block of THREADS_PER_BLOCK zeroed slots. False: THREAD_BLOCKS are there.
 * One caller at a time. */
bool thread_add_block(void *block);

/* Async-signal-safe, lock-free, both; so is the slot that an index names. */
uint32_t thread_slots(void);
struct thread *thread_slot(uint32_t index);

/* Whether a signal with this si_code and cookie is ours: from a timer of any slot, past or
 * present, or a question to one. */
bool thread_owns_signal(int code, const void *cookie);

#endif
