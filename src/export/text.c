/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void export_write_text(FILE *out, const char *text)
{
	putc_unlocked('"', out);
	text_write_json(out, text, "<");
	putc_unlocked('"', out);
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

char *text_repair(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *repaired = malloc(strlen(text) * 3 + 1), *to = repaired; /* one bad byte becomes three */
	size_t size;

	if (!repaired)
		return NULL;
	for (; *text; text += size ? size : 1) {
		size = character_size((const unsigned char *)text);
		to = mempcpy(to, size ? text : replacement, size ? size : 3);
	}
	*to = 0;
	return repaired;
}
