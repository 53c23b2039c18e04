/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text on a terminal: its width, and cutting it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

int terminal_width(void); /* in columns; 0: any number fits */
int terminal_room(
	int used); /* remaining columns of a line for a text: at least 8; INT_MAX: any number fits */
bool terminal_is_bold(void);

/* The width of a line of text. A character that cannot be shown has the width 1. */
int terminal_measure(const char *line, size_t size);

/* Prints the characters from the column `from` to before `to`, control characters as blanks. Returns their
 * width. */
int terminal_print(const char *line, size_t size, int from, int to);

/* Prints a line; if it is wider than `room`, cuts its end or its middle. Returns its width. */
int terminal_print_cut(const char *line, size_t size, int room, bool cuts_middle);

/* Prints a text from the column `from` on, in lines that end between words and begin at the column `indent`.
 */
void terminal_print_words(const char *text, int from, int indent);

void terminal_print_padding(int width);
