/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's functions that make texts in memory of their own.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/newer_glibc.h"

char *strndup(const char *text, size_t most)
{
	const size_t size = strnlen(text, most);
	char *copy = malloc(size + 1);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

char *strdup(const char *text)
{
	const size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

int vasprintf(char **text, const char *format, va_list arguments)
{
	va_list again;
	int size;

	va_copy(again, arguments);
	size = vsnprintf(NULL, 0, format, arguments);
	*text = size < 0 ? NULL : malloc((size_t)size + 1);
	size = *text ? vsnprintf(*text, (size_t)size + 1, format, again) : -1;
	va_end(again);
	return size;
}

int asprintf(char **text, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vasprintf(text, format, arguments);
	va_end(arguments);
	return size;
}

#if defined(__GLIBC__) /* musl's texts are constants */
/* libc's translates them, for which it may read files and take memory of the host's. */
char *strerror(int number)
{
	const char *text = strerrordesc_np ? strerrordesc_np(number) : NULL;

	return (char *)(text ? text : "Unknown error");
}

char *strerror_r(int number, char *room, size_t size)
{
	const char *text = strerrordesc_np ? strerrordesc_np(number) : NULL;

	if (text)
		return (char *)text;
	snprintf(room, size, "Unknown error %d", number);
	return room;
}
#endif
