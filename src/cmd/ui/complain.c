/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ui/complain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cmd/ui/pager.h"
#include "cmd/ui/progress.h"

static struct {
	bool is_on;
	char *text;
} held;

void complain_hold(void)
{
	held.is_on = true;
}

char *complain_detach(void)
{
	char *text = held.text;

	held.is_on = false;
	held.text = NULL;
	return text;
}

static void hold(const char *text)
{
	char *before = held.text;

	held.text = text_format("%s%s%s", before ? before : "", before ? "; " : "", text);
	free(before);
}

int complain(const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	/* The message may quote a file's content, which must not control the terminal. */
	if (text)
		text_blank_controls(text);
	if (held.is_on) {
		hold(text ? text : "out of memory");
	} else {
		progress_end();
		pager_end();
		fflush(stdout); /* in the order of events, if both have one destination */
		fprintf(stderr, "queryprof: %s\n", text ? text : "out of memory");
	}
	free(text);
	return COMMAND_FAILED;
}
