/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void why_add(struct why *why, const char *format, ...)
{
	size_t size = strlen(why->text);
	va_list arguments;
	if (size)
		size += (size_t)snprintf(why->text + size, sizeof(why->text) - size, "; ");
	if (size >= sizeof(why->text))
		return;
	va_start(arguments, format);
	vsnprintf(why->text + size, sizeof(why->text) - size, format, arguments);
	va_end(arguments);
}
