/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/calling.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/sys.h"
#include "base/thread_key.h"
#include "handler/unwind/stack_copy.h"
#include "interpreter/call_stack.h"
#include "timers/threads.h"

__thread struct calling *calling_current;
DEFINE_ADDRESS_OF_RECORDER(struct calling *, calling_current)

/* --- the tables of threads --------------------------------------------------------- */

static struct calling *unused; /* atomic */
static struct calling *newest; /* atomic: made */
static pthread_key_t key;
static bool has_key;

static void give_back(struct calling *first, struct calling *last)
{
	last->next = __atomic_load_n(&unused, __ATOMIC_RELAXED);
	/* Release: a thread that takes a table finds it in its final state. */
	while (!__atomic_compare_exchange_n(&unused, &last->next, first, true, __ATOMIC_RELEASE,
	                                    __ATOMIC_RELAXED))
		;
}

/* Takes the whole list for a moment: if only the first element were removed, the list could have
 * changed and changed back in between. */
static struct calling *acquire_unused(void)
{
	/* Acquire: with give_back(). */
	struct calling *all = __atomic_exchange_n(&unused, NULL, __ATOMIC_ACQUIRE), *last;

	if (all && (last = all->next)) {
		while (last->next)
			last = last->next;
		give_back(all->next, last);
	}
	return all;
}

/* Its calls stay in it until the next thread that has it finds them. */
static void end_thread(void *unused_value)
{
	struct calling *calling = calling_current;

	(void)unused_value;
	calling_current = NULL;
	if (calling)
		give_back(calling, calling);
}

static void begin_process(void)
{
	threads_notify(call_stack_find);
	has_key = !thread_key_create(&key, end_thread);
}

static struct calling *make_calling(void)
{
	static uint64_t number;
	struct calling *calling = calloc(1, sizeof(*calling));

	if (!calling)
		return NULL;
	calling->numbers = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED) << CALL_NUMBER_BITS;
	calling->older = __atomic_load_n(&newest, __ATOMIC_RELAXED);
	/* Release: with calling_runs(). */
	while (!__atomic_compare_exchange_n(&newest, &calling->older, calling, true, __ATOMIC_RELEASE,
	                                    __ATOMIC_RELAXED))
		;
	return calling;
}

uint64_t calling_runs(void)
{
	uint64_t runs = 0;

	for (struct calling *i = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); i; i = i->older)
		runs += __atomic_load_n(&i->runs, __ATOMIC_RELAXED);
	return runs;
}

struct calling *calling_begin_thread(void)
{
	static struct once once;
	struct calling *calling;

	once_do(&once, begin_process);
	calling = acquire_unused();
	if (!calling)
		calling = make_calling();
	if (!calling)
		return NULL;
	memset(calling->recent, 0, sizeof(calling->recent));
	calling->event_run = NULL;
	calling->library = NULL;
	for (uint32_t i = 0; i < calling->used; i++)
		calling->slots[i].is_orphan = true;
	/* Without a key the table stays the thread's when that has gone: 2 KiB. */
	if (has_key)
		pthread_setspecific(key, calling);
	return calling_current = calling;
}

/* --- which call --------------------------------------------------------------------- */

/* A thread without a slot does not know its stack: then no call is found to be left, and what the
 * thread does below one that was is taken for a part of it. So it gets one. */
static struct unwind_stack own_stack(void)
{
	const struct thread *thread = sampler_thread();

	return thread ? thread->stack : (struct unwind_stack){ 0, 0 };
}

/* One byte further up, so that a call in the very frame of one that was left is also past it. */
static enum frame_location slot_of(const struct call_slot *slot, const struct unwind_stack *stack,
                                   const void *frame)
{
	return frame_location(slot->frame, slot->frame_return, stack, (uintptr_t)frame + 1);
}

/* On another stack, which may have been unmapped, or written over after a longjmp. */
static bool is_written_over(const struct call_slot *slot)
{
	uintptr_t now;

	return !stack_copy_part(slot->frame + sizeof(now), &now, sizeof(now)) || now != slot->frame_return;
}

void calling_trim(struct calling *calling)
{
	while (calling->used && !call_slot_number(&calling->slots[calling->used - 1]))
		calling->used--;
}

bool calling_free_abandoned(struct calling *calling, const void *frame, struct run **run, uint64_t *number)
{
	struct unwind_stack stack = own_stack();
	bool is_full = calling->used == CALLS_MAX;

	for (uint32_t i = calling->used; i-- > 0;) {
		struct call_slot *slot = &calling->slots[i];
		enum frame_location where = slot_of(slot, &stack, frame);

		*number = call_slot_number(slot);
		if (!*number)
			continue;
		if (slot->is_orphan || (where == FRAME_ELSEWHERE && is_full && is_written_over(slot)))
			where = FRAME_LEFT;
		if (where != FRAME_LEFT)
			continue;
		*run = slot->run;
		call_slot_free(slot);
		calling_trim(calling);
		return true;
	}
	return false;
}

struct call_slot *calling_find(struct calling *calling, const void *frame)
{
	struct unwind_stack stack = own_stack();
	struct call_slot *found = NULL;

	for (uint32_t i = calling->used; i-- > 0;) {
		struct call_slot *slot = &calling->slots[i];

		if (call_slot_number(slot) && slot_of(slot, &stack, frame) == FRAME_AROUND &&
		    (!found || slot->frame < found->frame))
			found = slot;
	}
	return found;
}

static struct call_slot *find_free(struct calling *calling)
{
	if (calling->used < CALLS_MAX)
		return &calling->slots[calling->used++];
	for (uint32_t i = 0; i < CALLS_MAX; i++)
		if (!call_slot_number(&calling->slots[i]))
			return &calling->slots[i];
	return NULL;
}

/* --- one call ------------------------------------------------------------------------- */

static void see_around(struct call *call, struct call_slot *outer)
{
	call->outer = outer;
	call->outer_number = outer->number;
	call->running = outer->running;
	call->around = outer->run;
	call->is_quiet = outer->is_quiet;
	call->is_in_exec = outer->is_exec;
}

void call_enter_among(struct call *call, struct calling *calling)
{
	struct call_slot *slot = calling_find(calling, call->frame);

	if (slot)
		see_around(call, slot);
	slot = find_free(calling);
	if (slot)
		call_acquire_slot(call, calling, slot);
}

struct call_slot *call_outer(const struct call *call)
{
	return call->outer && call_slot_number(call->outer) == call->outer_number ? call->outer : NULL;
}
