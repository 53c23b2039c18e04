/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *text_format(const char *format, ...)
{
	va_list arguments;
	char *text;
	int size;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	return size < 0 ? NULL : text;
}

size_t text_cut(const char *text, size_t size)
{
	while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

void text_write_json(FILE *out, const char *text, const char *also)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f || strchr(also, c))
			fprintf(out, "\\u%04x", c);
		else
			putc_unlocked(c, out);
	}
}
