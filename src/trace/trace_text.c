/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store writes traces, but SQL may pass any text: so the array is parsed strictly. An
 * integer that SQLite shows as negative is the address with the same 64 bits.
 */
#include "trace/trace_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "symbol/symbol.h"
#include "trace/address.h"

static bool take_digits(const char **at, unsigned base, uint64_t limit, uint64_t *number)
{
	const char *start = *at;

	*number = 0;
	for (;; ++*at) {
		unsigned char c = (unsigned char)**at, lower = c | 0x20;
		unsigned digit = c >= '0' && c <= '9'           ? c - '0' + 0u
		                 : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10u
		                                                : 16;

		if (digit >= base)
			return *at > start;
		if (*number > (limit - digit) / base)
			return false;
		*number = *number * base + digit;
	}
}

static bool take_decimal(const char **at, uint64_t *address)
{
	if (**at != '-')
		return take_digits(at, 10, UINT64_MAX, address);
	++*at;
	if (!take_digits(at, 10, 1ull << 63, address))
		return false;
	*address = 0 - *address;
	return true;
}

bool trace_parse_address(const char *text, uint64_t *address)
{
	bool taken;

	if (text[0] == '0' && (text[1] | 0x20) == 'x') {
		text += 2;
		taken = take_digits(&text, 16, UINT64_MAX, address);
	} else {
		taken = take_decimal(&text, address);
	}
	return taken && !*text;
}

static char skip_blank(struct trace_reader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
	return *reader->at;
}

int trace_next(struct trace_reader *reader, uint64_t *address)
{
	char c = skip_blank(reader);

	if (reader->count++ > TRACE_READ_MAX)
		return -1;
	if (!reader->begun) {
		reader->begun = true;
		if (c != '[')
			return -1;
		reader->at++;
		c = skip_blank(reader);
		if (c != ']')
			return take_decimal(&reader->at, address) ? 1 : -1;
	}
	reader->at++;
	if (c == ',') {
		skip_blank(reader);
		return take_decimal(&reader->at, address) ? 1 : -1;
	}
	if (c != ']')
		return -1;
	return skip_blank(reader) ? -1 : 0;
}

/* --- for people ------------------------------------------------------------ */

/* The description of an address; malloc'ed, NULL: none. */
typedef char *(*read_address)(const struct address_space *space, uint64_t address);

static void write_json(FILE *out, const char *text)
{
	if (!text) {
		fputs("null", out);
		return;
	}
	putc_unlocked('"', out);
	text_write_json(out, text, "");
	putc_unlocked('"', out);
}

static void write_plain(FILE *out, const char *text)
{
	fputs(text ? text : "", out);
}

static char *write_trace(const struct address_space *space, const char *trace, const char *before,
                         const char *separator, const char *after, read_address read,
                         void (*write)(FILE *out, const char *text), bool *bad)
{
	struct trace_reader reader = { .at = trace };
	uint64_t address;
	size_t size;
	char *text = NULL;
	int next;
	FILE *out = open_memstream(&text, &size);

	*bad = false;
	if (!out)
		return NULL;
	fputs(before, out);
	for (const char *between = ""; (next = trace_next(&reader, &address)) > 0; between = separator) {
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

char *trace_text(const struct address_space *space, const char *trace, const char *separator, bool *bad)
{
	return write_trace(space, trace, "", separator, "", address_text, write_plain, bad);
}

char *trace_symbols(const struct address_space *space, const char *trace, bool *bad)
{
	return write_trace(space, trace, "[", ",", "]", address_text, write_json, bad);
}

char *trace_lines(const struct address_space *space, const char *trace, bool *bad)
{
	return write_trace(space, trace, "[", ",", "]", address_line, write_json, bad);
}

/* --- inlined functions ----------------------------------------------------- */

static void write_place(FILE *out, const struct symbol_frame *frame)
{
	text_write_json(out, frame->file ? frame->file : "??", "");
	fprintf(out, ":%d", frame->line);
}

static void write_inlined(FILE *out, const struct symbol_frame *frame)
{
	char *function = frame->function ? symbol_demangle(frame->function) : NULL;

	fputs(",\"", out);
	write_place(out, frame);
	putc_unlocked(':', out);
	text_write_json(out, function ? function : frame->function ? frame->function : "??", "");
	putc_unlocked('"', out);
	free(function);
}

char *trace_line_with_inlines(const struct address_space *space, uint64_t address)
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
			write_place(out, &frames[count - 1]);
		else
			text_write_json(out, line, "");
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
