/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running queries of a thread.
 */
#include "timers/push.h"

#include <string.h>

#include "base/own_process.h"
#include "handler/outside.h"
#include "timers/threads.h"
#include "wire/open_run.h"

/* Whether the place's run may be between two of its rows. */
static bool is_left_open(const struct query_tag *tag)
{
	const struct open_run *open = tag->counts ? tag->counts->open : NULL;

	/* Relaxed: only a hint, another thread may end the run at any moment. */
	return open && (__atomic_load_n(&open->shown, __ATOMIC_RELAXED) & 1) != 0;
}

uint64_t sampler_push(struct thread *thread, const struct query_tag *tag)
{
	uint32_t slot = nesting_find_slot(thread);
	struct query_tag *to = &thread->queries[slot];

	if (slot == QUERY_NESTING) {
		nesting_set(thread, thread->nesting + 1);
		return 0;
	}
	if (slot == 0 && __builtin_expect(is_left_open(to), 0))
		outside_keep_run(thread, to);
	/* The handler may come at any moment: it skips ended ones. */
	__atomic_store_n(&to->ended, true, __ATOMIC_RELAXED);
	HANDLER_BARRIER();
	__atomic_store_n(&to->number, ++thread->pushes, __ATOMIC_RELAXED);
	memcpy(&to->key, &tag->key, sizeof(*tag) - offsetof(struct query_tag, key));
	HANDLER_BARRIER();
	__atomic_store_n(&to->ended, false, __ATOMIC_RELAXED);
	HANDLER_BARRIER();
	/* Before the timers are checked: a signal in between finds the query, so it cannot disarm
	 * a timer that was just seen armed. */
	if (slot == thread->nesting)
		nesting_set(thread, slot + 1);
	timers_follow(thread, tag);
	if (__builtin_expect(thread->name_due, 0))
		threads_publish_name(thread);
	return to->number;
}

static void follow_newest(struct thread *thread)
{
	const struct query_tag *tag = nesting_top(thread);

	if (tag)
		timers_follow(thread, tag);
}

void sampler_follow(void)
{
	if (thread_current && own_process_is_here())
		follow_newest(thread_current);
}

void sampler_remove_among(struct thread *thread, uint64_t number)
{
	struct query_tag *tag;

	tag = number != 0 ? nesting_find(thread, number) : NULL;
	if (tag)
		__atomic_store_n(&tag->ended, true, __ATOMIC_RELAXED);
	/* The rest belongs to the thread: it does it with its next query. */
	if (thread != thread_current)
		return;
	if (number == 0 && thread->nesting > QUERY_NESTING)
		nesting_set(thread, thread->nesting - 1);
	nesting_trim(thread);
	/* The query around it may want other periods. */
	follow_newest(thread);
}

void sampler_push_worker(struct thread *thread, const struct query_tag *tag)
{
	struct thread_timer *timer = &thread->timers[TIMER_CPU];

	/* Not when the thread has run something else before. */
	timer->whole = timer->period_ns == 0;
	thread->is_worker = true;
	sampler_push(thread, tag);
}

void sampler_pop_worker(struct thread *thread)
{
	timers_deliver_rest(thread);
	thread->timers[TIMER_CPU].whole = thread->is_worker = false;
	sampler_pop(thread);
}

void sampler_pop(struct thread *thread)
{
	const struct query_tag *tag = nesting_top(thread);

	if (tag)
		sampler_remove(thread, thread->nesting > QUERY_NESTING ? 0 : tag->number);
}
