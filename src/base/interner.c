#include "base/interner.h"

#include <stdlib.h>
#include <string.h>

static uint32_t number_of(struct interner *interner, const char *bytes, size_t size)
{
	struct hash key = hash_bytes(bytes, size);
	uint32_t number = index_find(&interner->index, key);
	char *copy = NULL;

	if (number != INDEX_NONE)
		return number;
	if (vector_reserve(&interner->texts, interner->texts.count + 1))
		copy = strndup(bytes, size);
	if (copy)
		number = index_add(&interner->index, key);
	if (number == INDEX_NONE)
		free(copy);
	else
		vector_push(&interner->texts, copy);
	return number;
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
