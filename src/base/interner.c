/* SPDX-License-Identifier: Apache-2.0 */
#include "base/interner.h"

#include <stdlib.h>
#include <string.h>

static uint32_t number_of(struct interner *interner, const char *bytes, size_t size)
{
	char **text = index_item(&interner->index, hash_bytes(bytes, size), &interner->texts);

	/* Also NULL if there was no memory for the copy the previous time. */
	if (text && !*text)
		*text = strndup(bytes, size);
	return text && *text ? (uint32_t)(text - interner->texts.items) : INTERNER_NO_MEMORY;
}

uint32_t interner_number(struct interner *interner, const char *text)
{
	return number_of(interner, text, strlen(text));
}

const char *interner_keep(struct interner *interner, const char *bytes, size_t size)
{
	uint32_t number = number_of(interner, bytes, size);

	return number == INTERNER_NO_MEMORY ? NULL : interner->texts.items[number];
}

void interner_free(struct interner *interner)
{
	for (size_t i = 0; i < interner->texts.count; i++)
		free(interner->texts.items[i]);
	vector_free(&interner->texts);
	index_free(&interner->index);
}
