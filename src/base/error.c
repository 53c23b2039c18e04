/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static __thread char newest[512];

int error_set(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(newest, sizeof(newest), format, arguments);
	va_end(arguments);
	return code;
}

int error_detach(int code, char *sentence, const char *fallback)
{
	error_set(code, "%s", sentence ? sentence : fallback);
	free(sentence);
	return code;
}

const char *qp_error(void)
{
	return newest;
}
