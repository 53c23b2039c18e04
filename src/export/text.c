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

char *text_repair(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *repaired = malloc(strlen(text) * 3 + 1), *to = repaired; /* one bad byte becomes three */
	size_t size;

	if (!repaired)
		return NULL;
	for (; *text; text += size ? size : 1) {
		size = text_character_size(text);
		to = mempcpy(to, size ? text : replacement, size ? size : 3);
	}
	*to = 0;
	return repaired;
}
