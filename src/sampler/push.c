/*
 * The running queries of a thread.
 */
#include "sampler/push.h"

#include "sampler/threads.h"
#include "sampler/timers.h"

static bool has_ended(const struct query_tag *tag)
{
	/* Relaxed: the place is all that it tells of. */
	return __atomic_load_n(&tag->ended, __ATOMIC_RELAXED);
}

/* The index of a free place; QUERY_NESTING: there is none. */
static uint32_t find_place(const struct thread *thread)
{
	uint32_t place = thread->nesting;

	if (place < QUERY_NESTING)
		return place;
	for (place = 0; place < QUERY_NESTING && !has_ended(&thread->queries[place]);)
		place++;
	return place;
}

uint64_t sampler_push(struct thread *thread, const struct query_tag *tag)
{
	uint32_t place = find_place(thread);
	struct query_tag *to = &thread->queries[place];

	if (place == QUERY_NESTING) {
		thread->nesting++;
		return 0;
	}
	/* The handler may come at any moment: it skips what has ended. */
	__atomic_store_n(&to->ended, true, __ATOMIC_RELAXED);
	HANDLER_BARRIER();
	__atomic_store_n(&to->number, ++thread->pushes, __ATOMIC_RELAXED);
	to->key = tag->key;
	to->initial = tag->initial;
	for (int clock = 0; clock < TIMER_CLOCKS; clock++)
		to->period_ns[clock] = tag->period_ns[clock];
	to->counts = tag->counts;
	to->frame = tag->frame;
	to->frame_return = tag->frame_return;
	to->mutex_owner = tag->mutex_owner;
	HANDLER_BARRIER();
	__atomic_store_n(&to->ended, false, __ATOMIC_RELAXED);
	HANDLER_BARRIER();
	/* Before the look at the timers: a signal in between finds the query, so it
	 * cannot disarm what was just seen armed. */
	if (place == thread->nesting)
		thread->nesting = place + 1;
	timers_follow(thread, tag);
	if (__builtin_expect(thread->name_due, 0))
		threads_tell_name(thread);
	return to->number;
}

/* Places behind the last query are free without a mark. */
static void trim(struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	while (nesting > 0 && nesting <= QUERY_NESTING && has_ended(&thread->queries[nesting - 1]))
		nesting--;
	thread->nesting = nesting;
}

static void follow_newest(struct thread *thread)
{
	const struct query_tag *tag = sampler_top(thread);

	if (tag != NULL)
		timers_follow(thread, tag);
}

static struct query_tag *find_tag(struct thread *thread, uint64_t number)
{
	uint32_t nesting = thread->nesting;

	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		/* Relaxed: the owner of a number finds it where it is, nobody moves it. */
		if (__atomic_load_n(&thread->queries[i].number, __ATOMIC_RELAXED) == number)
			return &thread->queries[i];
	}
	return NULL;
}

void sampler_remove(struct thread *thread, uint64_t number)
{
	struct query_tag *tag;

	/* The thread's only one, as nearly always. */
	if (thread->nesting == 1 && thread == thread_current && thread->queries[0].number == number) {
		thread->nesting = 0;
		return;
	}
	tag = number != 0 ? find_tag(thread, number) : NULL;
	if (tag != NULL)
		__atomic_store_n(&tag->ended, true, __ATOMIC_RELAXED);
	/* The rest is the thread's own: it does it with its next query. */
	if (thread != thread_current)
		return;
	if (number == 0 && thread->nesting > QUERY_NESTING)
		thread->nesting--;
	trim(thread);
	/* The query around it may want other periods. */
	follow_newest(thread);
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
	const struct query_tag *tag = sampler_top(thread);

	if (tag != NULL)
		sampler_remove(thread, thread->nesting > QUERY_NESTING ? 0 : tag->number);
}

const struct query_tag *sampler_top(const struct thread *thread)
{
	const struct query_tag *newest = NULL;
	uint32_t nesting = thread->nesting;

	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		const struct query_tag *tag = &thread->queries[i];

		if (!has_ended(tag) && (newest == NULL || tag->number > newest->number))
			newest = tag;
	}
	return newest;
}
