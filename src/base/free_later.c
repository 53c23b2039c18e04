/* SPDX-License-Identifier: Apache-2.0 */
#include "base/free_later.h"

#include <stdlib.h>
#include <string.h>

/* In the memory itself. */
struct waiting {
	struct waiting *next;
};

static struct waiting *first;

_Static_assert(sizeof(struct waiting) <= FREE_LATER_MIN, "its place");

void free_later(void *memory, size_t size)
{
	struct waiting *waiting = memory;

	if (!memory || size < FREE_LATER_MIN)
		return;
	waiting->next = first;
	first = waiting;
}

void free_text_later(char *text)
{
	if (text)
		free_later(text, strlen(text) + 1);
}

void free_what_waits(void)
{
	while (first) {
		struct waiting *next = first->next;

		free(first);
		first = next;
	}
}
