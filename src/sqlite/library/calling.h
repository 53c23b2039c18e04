/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that a thread is inside: the host's calls of SQLite that have not returned.
 *
 * Calls do not end in the order in which they began. A longjmp abandons some of them. A thread may
 * have several stacks (coroutines), each with unfinished calls; a coroutine may be continued on
 * another thread, or never, and its stack may be unmapped then. So the calls of a thread are in a
 * table that is never freed. The frames, not the order, determine the calls that enclose a piece of
 * code (handler/running.h), and a call that returns removes exactly itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/of_recorder.h"
#include "base/hash.h"
#include "handler/running.h"
#include "wire/lock_record.h"

struct host_library;
struct lock_file;
struct orphan_walk;
struct bytecode_due;
struct module_record;
struct run;
struct wal;

/* One call, as the code finds it that runs inside. */
struct call_slot {
	uint64_t number;               /* atomic; 0: the slot is free */
	uintptr_t frame, frame_return; /* of the wrapper */
	const struct host_library *library;
	struct run *running; /* the outermost run that the call is part of, NULL: none */
	struct run *run;     /* the innermost one */
	bool is_orphan;      /* its thread has ended, or its frame is not on the stack any more */
	bool is_quiet;       /* statements that are stepped inside have no runs */
	bool is_exec;        /* sqlite3_exec() of the host's code, inside a step */
	void *newest_row;    /* of an exec: the statement of its newest row */
};

#define CALLS_MAX 24
#define CALLS_RECENT 64u /* a power of two */

/* The lock that SQLite was refused in the thread's call. */
struct lock_refusal {
	const struct lock_file *file; /* on which it was requested; NULL: not known */
	uint32_t tries;
	uint64_t since_ns, since_realtime_ns;
	uint64_t publish_next_ns; /* the wait's length at which it is published again */
	struct lock_holder holder;
	char text[LOCK_TEXT_MAX]; /* the holder's statement */
};

/* Where the rows of a module's cursor are counted in that call, see module_counts.c. */
struct counted_rows {
	const struct call_slot *slot;
	uint64_t call;      /* its number */
	const void *cursor; /* NULL: of none */
	int64_t *rows;
};

struct calling {
	uint32_t used; /* slots up to here may be taken */
	uint64_t numbers;
	uint64_t runs; /* atomic: how many calls of the table have begun */
	struct call_slot slots[CALLS_MAX];
	/* The statements for which calls of the thread recently worked: guesses, see run_call.h. */
	struct run *recent[CALLS_RECENT];
	struct run *event_run; /* begun by the thread's newest event of a trace callback */
	struct lock_refusal refused;
	struct bytecode_due *due;      /* see bytecode.h */
	struct module_record *modules; /* see module_calls.h */
	struct orphan_walk *walk;      /* see orphans.c */
	struct counted_rows rows;
	const struct host_library *library; /* of that event */
	struct wal *wal;                    /* that the thread wrote to last; NULL: not known */
	struct calling *next;               /* of the unused ones */
	struct calling *older;              /* of all */
	uint32_t checkpoint_mode;           /* of sqlite3_wal_checkpoint_v2(), plus 1; 0: no such call */
};

/* Statements are some hundred bytes long. */
static inline struct run **calling_recent(struct calling *calling, const void *stmt)
{
	return &calling->recent[hash_pointer(stmt) & (CALLS_RECENT - 1)];
}

/* The record of a call, on the wrapper's frame. */
struct call {
	struct calling *calling; /* of the thread that began the call; NULL: there is no slot */
	struct call_slot *slot;
	uint64_t number; /* identifies the call in the process; 0: there is no slot */
	const struct host_library *library;
	const void *frame;
	/* The call around it. */
	struct call_slot *outer;
	uint64_t outer_number;
	struct run *running, *around;
	bool is_quiet, is_in_exec;
};

/* The runs that calls have begun, in all tables. */
uint64_t calling_runs(void);

/* The calling thread's table, NULL: not made yet. */
ADDRESS_OF_RECORDER(struct calling *, calling_current);
#ifdef QUERYPROF_REST
#define calling_current (*calling_current_address())
#else
extern __thread struct calling *calling_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
#endif

/* Makes it. NULL: no memory. */
struct calling *calling_begin_thread(void);

/* The calling thread's table; made at the first call. NULL: out of memory. Do not use it across a
 * call of the host, after which a coroutine may be on another thread. */
static inline struct calling *calling_here(void)
{
	return __builtin_expect(calling_current != 0, 1) ? calling_current : calling_begin_thread();
}

static inline uint64_t call_slot_number(const struct call_slot *slot)
{
	/* Relaxed: another thread only ever frees a slot. */
	return __atomic_load_n(&slot->number, __ATOMIC_RELAXED);
}

static inline void call_slot_free(struct call_slot *slot)
{
	__atomic_store_n(&slot->number, 0, __ATOMIC_RELAXED);
}

/* `used` goes down to the last slot that is taken. */
void calling_trim(struct calling *calling);

/* The low bits of every call's number are 0, because a run's owner has flags there (runs.h). */
#define CALL_NUMBER_STEP 4

/* The bits of a call's number above these are the number of its thread's table. */
#define CALL_NUMBER_BITS 48

static inline uint64_t call_number_table(uint64_t number)
{
	return number >> CALL_NUMBER_BITS;
}

/* A number that no other call of the process has. */
static inline uint64_t calling_number(struct calling *calling)
{
	return calling->numbers += CALL_NUMBER_STEP;
}

/* Frees the slot of one call whose frame shows that it was left, and returns its run, NULL: none,
 * and its number. False: there is none. `frame` belongs to the calling code. */
bool calling_free_abandoned(struct calling *calling, const void *frame, struct run **run, uint64_t *number);

/* The innermost call that the code of `frame` is inside of, NULL: none. */
struct call_slot *calling_find(struct calling *calling, const void *frame);

/* Parts of call_enter(): the slot of the call; and if the thread is in other calls, that slot and
 * the enclosing calls. */
static inline void call_acquire_slot(struct call *call, struct calling *calling, struct call_slot *slot)
{
	call->calling = calling;
	call->slot = slot;
	call->number = calling_number(calling);
	slot->frame = (uintptr_t)call->frame;
	slot->frame_return = frame_return_address((uintptr_t)call->frame);
	slot->library = call->library;
	slot->running = call->running;
	slot->run = call->around;
	slot->is_quiet = call->is_quiet;
	slot->is_exec = slot->is_orphan = false;
	slot->newest_row = NULL;
	__atomic_store_n(&slot->number, call->number, __ATOMIC_RELAXED);
}
void call_enter_among(struct call *call, struct calling *calling);

/* The calling thread begins a call and has returned from it, if need be on another thread.
 * Inline, as the next: every step of every statement comes here, nearly always as the only
 * call of its thread. */
static inline void call_enter(struct call *call, const struct host_library *library, const void *frame)
{
	struct calling *calling = calling_here();

	*call = (struct call){ .library = library, .frame = frame };
	if (!calling)
		return;
	if (__builtin_expect(calling->used, 0)) {
		call_enter_among(call, calling);
		return;
	}
	calling->used = 1;
	call_acquire_slot(call, calling, calling->slots);
}

static inline void call_leave(struct call *call)
{
	struct calling *calling = call->calling;

	if (!calling || call_slot_number(call->slot) != call->number)
		return;
	call_slot_free(call->slot);
	/* The rest belongs to the thread. */
	if (calling != calling_current)
		return;
	if (__builtin_expect(calling->used == 1, 1))
		calling->used = 0;
	else
		calling_trim(calling);
}

/* call_enter(): statements that are stepped inside have no runs. */
static inline void call_enter_quiet(struct call *call, const struct host_library *library, const void *frame)
{
	call_enter(call, library, frame);
	if (call->number)
		call->slot->is_quiet = true;
}

/* The call works for the run from now on, NULL: no longer. */
static inline void call_set_run(struct call *call, struct run *run)
{
	struct call_slot *slot = call->slot;

	if (!slot || call_slot_number(slot) != call->number)
		return;
	slot->run = run ? run : call->around;
	slot->running = call->running ? call->running : run;
}

/* The slot of the call around this one, NULL: none, or it has gone. */
struct call_slot *call_outer(const struct call *call);
