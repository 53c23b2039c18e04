#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

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
