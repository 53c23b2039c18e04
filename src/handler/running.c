/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/running.h"

/* With hosts whose steps cannot be hooked a query stays on the stack between its steps. */
static bool holds_mutex(const struct query_tag *tag, const struct thread *thread)
{
	if (!tag->mutex_owner)
		return true;
	/* Read once: another thread may be closing the connection. */
	const volatile int *owner = *tag->mutex_owner;
	return owner && *owner == (int)thread->id;
}

/* Frames of one stack compare by their addresses. A query without a frame (another engine's,
 * one of the trace callback) is only older or newer than the others. */
static bool is_inside(const struct query_tag *tag, const struct query_tag *other)
{
	return tag->frame != 0 && other->frame != 0 ? tag->frame < other->frame : tag->number > other->number;
}

const struct query_tag *query_running(const struct thread *thread, uintptr_t sp, bool *waits)
{
	uint32_t nesting = thread->nesting;
	const struct query_tag *found = NULL;

	*waits = false;
	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		const struct query_tag *tag = &thread->queries[i];

		/* Relaxed: another thread may end a call that began here, at any moment. */
		if (__atomic_load_n(&tag->ended, __ATOMIC_RELAXED))
			continue;
		enum frame_location location = FRAME_AROUND;
		if (tag->frame != 0)
			location = frame_location(tag->frame, tag->frame_return, &thread->stack, sp);
		if (location == FRAME_LEFT)
			continue;
		if (location == FRAME_ELSEWHERE || !holds_mutex(tag, thread)) {
			*waits = true;
			continue;
		}
		if (!found || is_inside(tag, found))
			found = tag;
	}
	return found;
}
