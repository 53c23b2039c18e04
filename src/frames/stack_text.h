/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace as text: the JSON array of its addresses, as SQL has it, and what people read in
 * its place.
 */
#ifndef QUERYPROF_FRAMES_STACK_TEXT_H
#define QUERYPROF_FRAMES_STACK_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct address_space;

/* Reads the array, one address a call; starts as { trace }. */
struct trace_reader {
	const char *at;
	unsigned count; /* of calls */
};
/* 1: an address; 0: the end; -1: not an array of addresses, or one that is far longer than any
 * trace: a file may say anything. */
#define TRACE_READ_MAX 65536
int trace_next(struct trace_reader *reader, uint64_t *address);

/* All functions as symbols (demangled) with `separator` between them. malloc'ed; NULL
 * with *bad when `trace` is not an array of addresses, without when there is no memory. */
char *trace_text(const struct address_space *space, const char *trace, const char *separator, bool *bad);

/* The same as JSON arrays of texts: symbols, and files with lines (null where
 * nothing is known). */
char *trace_symbols(const struct address_space *space, const char *trace, bool *bad);
char *trace_lines(const struct address_space *space, const char *trace, bool *bad);

/* The line of an address in the function whose code it is, and then, innermost first,
 * what was inlined there as file:line:function: a JSON array of texts. Without line
 * information it holds the object's path alone. malloc'ed; NULL for an address in no
 * known module, and when there is no memory. */
char *trace_line_with_inlines(const struct address_space *space, uint64_t address);

/* Parses a decimal or 0x number without anything around it. */
bool trace_parse_address(const char *text, uint64_t *address);

#endif
