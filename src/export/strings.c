/*
 * A hash table of numbers over an array of texts. See the header.
 */
#include "export/strings.h"

#include <stdlib.h>
#include <string.h>

struct entry {
	struct hash key;
	uint32_t number;
};

uint32_t strings_add(struct strings *strings, const char *text)
{
	struct hash key = hash_bytes(text, strlen(text));

	strings->table.entry_size = sizeof(struct entry);
	strings->table.limit = SIZE_MAX;
	const struct entry *known = hash_table_find(&strings->table, key);
	if (known)
		return known->number;
	if (strings->count == strings->capacity) {
		uint32_t capacity = strings->capacity ? strings->capacity * 2 : 64;
		char **grown = reallocarray(strings->texts, capacity, sizeof(*grown));
		if (!grown)
			return STRINGS_NO_MEMORY;
		strings->texts = grown;
		strings->capacity = capacity;
	}
	char *copy = strdup(text);
	struct entry *entry = copy ? hash_table_add(&strings->table, key) : NULL;
	if (!entry) {
		free(copy);
		return STRINGS_NO_MEMORY;
	}
	entry->number = strings->count;
	strings->texts[strings->count] = copy;
	return strings->count++;
}

/* Bytes of the UTF-8 character that begins here, 0 when none does. */
static size_t character_size(const unsigned char *at)
{
	/* By the first byte: how many, and the range of the second, which keeps out
	 * overlong forms, surrogates and what lies past Unicode's end. */
	static const struct {
		unsigned char first, last, size, second_min, second_max;
	} kinds[] = {
		{ 0x01, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
		{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
		{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (*at < kinds[i].first || *at > kinds[i].last)
			continue;
		for (size_t j = 1; j < kinds[i].size; j++)
			if (at[j] < (j == 1 ? kinds[i].second_min : 0x80) ||
			    at[j] > (j == 1 ? kinds[i].second_max : 0xbf))
				return 0;
		return kinds[i].size;
	}
	return 0;
}

const char *strings_keep(struct strings *strings, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t size;

	while (*at && (size = character_size(at)) > 0)
		at += size;
	char *repaired = NULL;
	if (*at) {
		/* One bad byte becomes three. */
		char *to = repaired = malloc(strlen(text) * 3 + 1);
		if (!repaired)
			return NULL;
		for (at = (const unsigned char *)text; *at; at += size ? size : 1) {
			size = character_size(at);
			memcpy(to, size ? (const char *)at : "\xef\xbf\xbd", size ? size : 3);
			to += size ? size : 3;
		}
		*to = 0;
	}
	uint32_t number = strings_add(strings, repaired ? repaired : text);
	free(repaired);
	return number == STRINGS_NO_MEMORY ? NULL : strings->texts[number];
}

void strings_free(struct strings *strings)
{
	for (uint32_t i = 0; i < strings->count; i++)
		free(strings->texts[i]);
	free(strings->texts);
	hash_table_free(&strings->table);
	*strings = (struct strings){ 0 };
}
