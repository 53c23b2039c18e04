/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ui/terminal.h"

#include <limits.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/text.h"

int terminal_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	if (columns && atoi(columns) > 0)
		return atoi(columns);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 0;
}

int terminal_room(int used)
{
	const int width = terminal_width();

	return !width ? INT_MAX : width > used + 8 ? width - used : 8;
}

bool terminal_is_bold(void)
{
	const char *term = getenv("TERM"), *refused = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && !(refused && refused[0]);
}

/* The next character of a line: its bytes, and its width on the terminal. If it cannot be shown, the width is
 * 1, and `*shown` is false. */
static size_t next_character(const char *at, size_t left, int *width, bool *shown)
{
	mbstate_t state = { 0 };
	wchar_t character;
	size_t size = mbrtowc(&character, at, left, &state);

	if (size == 0 || size > left) {
		*width = 1;
		*shown = false;
		return 1;
	}
	*width = wcwidth(character);
	*shown = *width >= 0 && !text_control(at, size);
	if (!*shown)
		*width = 1;
	return size;
}

int terminal_measure(const char *line, size_t size)
{
	int total = 0, width;
	bool shown;

	while (size) {
		size_t step = next_character(line, size, &width, &shown);
		total += width;
		line += step;
		size -= step;
	}
	return total;
}

int terminal_print(const char *line, size_t size, int from, int to)
{
	int at = 0, printed = 0, width;
	bool shown;

	for (size_t step; size; line += step, size -= step, at += width) {
		step = next_character(line, size, &width, &shown);
		if (at < from || at + width > to)
			continue;
		if (shown)
			fwrite(line, 1, step, stdout);
		else
			putchar(' ');
		printed += width;
	}
	return printed;
}

/* cuts_middle: for names of functions, whose beginnings are similar. */
int terminal_print_cut(const char *line, size_t size, int room, bool cuts_middle)
{
	const char *ellipsis = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\xe2\x80\xa6" : "~";
	int width = terminal_measure(line, size);

	if (width <= room)
		return terminal_print(line, size, 0, width);
	int end = cuts_middle ? (room - 1) / 2 : 0; /* of the end that stays */
	int printed = terminal_print(line, size, 0, room - 1 - end);
	fputs(ellipsis, stdout);
	return printed + 1 + terminal_print(line, size, width - end, width);
}

void terminal_print_words(const char *text, int from, int indent)
{
	const int width = terminal_width();

	while (*(text += strspn(text, " "))) {
		const size_t size = strcspn(text, " ");
		const int wide = terminal_measure(text, size);
		const bool is_first = from == indent;

		if (width && !is_first && from + wide + 1 > width) {
			printf("\n");
			terminal_print_padding(indent);
			from = indent;
		} else if (!is_first) {
			from += printf(" ");
		}
		from += terminal_print(text, size, 0,
		                       width && wide > width - indent ? width - indent : INT_MAX);
		text += size;
	}
}

void terminal_print_padding(int width)
{
	if (width > 0)
		printf("%*s", width, "");
}
