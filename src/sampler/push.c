/*
 * The stack of running queries of a thread.
 */
#include "sampler/push.h"

#include "sampler/internal.h"

void sampler_push(struct thread *thread, const struct query_tag *tag)
{
	uint32_t nesting = thread->nesting;

	if (nesting < QUERY_NESTING)
		thread->queries[nesting] = *tag;
	HANDLER_BARRIER();
	/* Before the look at the timers: a signal in between finds the query, so it
	 * cannot disarm what was just seen armed. */
	thread->nesting = nesting + 1;
	if (nesting < QUERY_NESTING)
		timers_follow(thread, tag);
	if (__builtin_expect(thread->name_due, 0))
		threads_tell_name(thread);
}

void sampler_push_worker(struct thread *thread, const struct query_tag *tag)
{
	struct thread_timer *timer = &thread->timers[TIMER_CPU];

	/* Not when the thread has run something else before. */
	timer->whole = timer->period_ns == 0;
	sampler_push(thread, tag);
}

void sampler_pop_worker(struct thread *thread)
{
	timers_tell_rest(thread);
	thread->timers[TIMER_CPU].whole = false;
	sampler_pop(thread);
}

void sampler_pop(struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	if (nesting == 0)
		return;
	thread->nesting = nesting - 1;
	/* The query around it may want other periods. */
	if (nesting > 1 && nesting <= QUERY_NESTING)
		timers_follow(thread, &thread->queries[nesting - 2]);
}

const struct query_tag *sampler_top(const struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	if (nesting == 0)
		return NULL;
	return &thread->queries[(nesting < QUERY_NESTING ? nesting : QUERY_NESTING) - 1];
}
