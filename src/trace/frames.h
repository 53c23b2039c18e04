/*
 * A trace as SQL has it, the JSON array of its addresses, and what is made of it
 * for people.
 */
#ifndef QUERYPROF_TRACE_FRAMES_H
#define QUERYPROF_TRACE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct address_space;

/* Reads the array one address at a time: start with `{ trace }`. */
struct frames {
	const char *at;
	bool begun;
};
/* 1: an address; 0: the end; -1: not an array of addresses. */
int frames_next(struct frames *frames, uint64_t *address);

/* All frames as symbols (demangled) with `separator` between them. malloc'ed; NULL
 * with *bad when it is not an array of addresses, without when there is no memory. */
char *frames_text(const struct address_space *space, const char *trace, const char *separator, bool *bad);

/* The same as JSON arrays of texts: symbols, and files with lines (null where
 * nothing is known). */
char *frames_symbols(const struct address_space *space, const char *trace, bool *bad);
char *frames_lines(const struct address_space *space, const char *trace, bool *bad);

/* The line of an address in the function whose code it is, and then, innermost first,
 * what was inlined there as file:line:function: a JSON array of texts. Without line
 * information it holds the object's path alone. malloc'ed; NULL for an address in no
 * known module, and when there is no memory. */
char *frames_line_with_inlines(const struct address_space *space, uint64_t address);

/* A decimal or 0x number without anything around it. */
bool frames_address(const char *text, uint64_t *address);

#endif
