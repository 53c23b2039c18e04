#include "handler/running.h"

/* With hosts whose steps cannot be hooked a query stays on the stack between its steps. */
static bool holds_mutex(const struct query_tag *tag, const struct thread *thread)
{
	if (tag->mutex_owner == NULL)
		return true;
	/* Read once: another thread may be closing the connection. */
	const volatile int *owner = *tag->mutex_owner;
	return owner != NULL && *owner == (int)thread->id;
}

const struct query_tag *query_running(const struct thread *thread, uintptr_t sp, bool *waits)
{
	uint32_t nesting = thread->nesting;

	*waits = false;
	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		const struct query_tag *tag = &thread->queries[i];
		if (holds_mutex(tag, thread))
			/* Left by a longjmp: nobody pops it before the thread's next query. */
			return query_tag_was_left(tag, &thread->stack, sp) ? NULL : tag;
	}
	*waits = nesting != 0;
	return NULL;
}
