/* SPDX-License-Identifier: Apache-2.0 */
#include "base/free_later.h"

#include <stdlib.h>

/* In the memory itself: any that malloc() gives has room for it. */
struct waiting {
	struct waiting *next;
};

static struct waiting *first;

void free_later(void *memory)
{
	struct waiting *waiting = memory;

	if (!memory)
		return;
	waiting->next = first;
	first = waiting;
}

void free_what_waits(void)
{
	while (first) {
		struct waiting *next = first->next;

		free(first);
		first = next;
	}
}
