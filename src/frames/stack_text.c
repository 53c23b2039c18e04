/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store writes stacks, but SQL may pass any text: so the array is parsed strictly. An
 * integer that SQLite shows as negative is the address with the same 64 bits.
 */
#include "frames/stack_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "symbol/symbol.h"
#include "frames/address.h"

#define HEXADECIMAL "0123456789abcdefABCDEF"

bool address_parse(const char *text, uint64_t *address)
{
	const char *digits = text + 2;

	if (text[0] != '0' || (text[1] | 0x20) != 'x')
		return !isspace((unsigned char)*text) && json_read_integer(&text, address) && !*text;
	errno = 0;
	*address = strtoull(digits, NULL, 16);
	return *digits && !digits[strspn(digits, HEXADECIMAL)] && !errno;
}

int address_reader_next(struct address_reader *reader, uint64_t *address)
{
	const bool is_first = reader->count == 0;

	if (reader->count++ > ADDRESS_READ_MAX || (is_first && !json_read(&reader->at, '[')))
		return -1;
	if (json_read(&reader->at, ']'))
		return json_read(&reader->at, 0) ? 0 : -1;
	return (is_first || json_read(&reader->at, ',')) && json_read_integer(&reader->at, address) ? 1 : -1;
}

/* --- for people ------------------------------------------------------------ */

/* The description of an address; malloc'ed, NULL: none. */
typedef char *(*read_address)(const struct address_space *space, uint64_t address);

static void write_json(FILE *out, const char *text)
{
	if (text)
		json_write_text(out, text, "");
	else
		fputs("null", out);
}

static void write_plain(FILE *out, const char *text)
{
	fputs(text ? text : "", out);
}

static char *write_stack(const struct address_space *space, const char *stack, const char *before,
                         const char *separator, const char *after, read_address read,
                         void (*write)(FILE *out, const char *text), bool *bad)
{
	struct address_reader reader = { .at = stack };
	uint64_t address;
	size_t size;
	char *text = NULL;
	int next;
	FILE *out = open_memstream(&text, &size);

	*bad = false;
	if (!out)
		return NULL;
	fputs(before, out);
	for (const char *between = ""; (next = address_reader_next(&reader, &address)) > 0;
	     between = separator) {
		char *known = read(space, address);
		fputs(between, out);
		write(out, known);
		free(known);
	}
	fputs(after, out);
	*bad = next < 0;
	if (fclose(out) || *bad) {
		free(text);
		return NULL;
	}
	return text;
}

char *stack_text(const struct address_space *space, const char *stack, const char *separator, bool *bad)
{
	return write_stack(space, stack, "", separator, "", address_text, write_plain, bad);
}

char *stack_symbols(const struct address_space *space, const char *stack, bool *bad)
{
	return write_stack(space, stack, "[", ",", "]", address_text, write_json, bad);
}

char *stack_lines(const struct address_space *space, const char *stack, bool *bad)
{
	return write_stack(space, stack, "[", ",", "]", address_line, write_json, bad);
}

/* --- inlined functions ----------------------------------------------------- */

static void write_location(FILE *out, const struct symbol_frame *frame)
{
	json_write_part(out, frame->file ? frame->file : "??", "");
	fprintf(out, ":%d", frame->line);
}

static void write_inlined(FILE *out, const struct symbol_frame *frame)
{
	char *function = frame->function ? symbol_demangle(frame->function) : NULL;

	fputs(",\"", out);
	write_location(out, frame);
	putc_unlocked(':', out);
	json_write_part(out, function ? function : frame->function ? frame->function : "??", "");
	putc_unlocked('"', out);
	free(function);
}

char *address_line_with_inlines(const struct address_space *space, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t count = address_frames(space, address, frames, SYMBOL_FRAMES_MAX), size;
	bool has_line = count && frames[count - 1].file;
	char *line = has_line ? NULL : address_line(space, address), *text = NULL;
	FILE *out;

	if (!has_line && !line)
		return NULL;
	out = open_memstream(&text, &size);
	if (out) {
		fputs("[\"", out);
		if (has_line)
			write_location(out, &frames[count - 1]);
		else
			json_write_part(out, line, "");
		putc_unlocked('"', out);
		for (size_t i = 0; i + 1 < count; i++)
			write_inlined(out, &frames[i]);
		putc_unlocked(']', out);
		if (fclose(out)) {
			free(text);
			text = NULL;
		}
	}
	free(line);
	return text;
}
