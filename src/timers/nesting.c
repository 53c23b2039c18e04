/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/nesting.h"

struct query_tag *nesting_find(struct thread *thread, uint64_t number)
{
	uint32_t nesting = thread->nesting;

	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		/* Relaxed: the owner of a number finds it in place, because no thread moves it. */
		if (__atomic_load_n(&thread->queries[i].number, __ATOMIC_RELAXED) == number)
			return &thread->queries[i];
	}
	return NULL;
}

void nesting_trim(struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	while (nesting > 0 && nesting <= QUERY_NESTING && nesting_has_ended(&thread->queries[nesting - 1]))
		nesting--;
	nesting_set(thread, nesting);
}

const struct query_tag *nesting_top(const struct thread *thread)
{
	const struct query_tag *newest = NULL;
	uint32_t nesting = thread->nesting;

	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		const struct query_tag *tag = &thread->queries[i];

		if (!nesting_has_ended(tag) && (!newest || tag->number > newest->number))
			newest = tag;
	}
	return newest;
}
