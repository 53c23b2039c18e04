/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack as text: the JSON array of its addresses, as in SQL, and its form for people.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct address_space;

/* Reads the array, one address a call; starts as { stack }. */
struct address_reader {
	const char *at;
	unsigned count; /* of calls */
};
/* 1: an address; 0: the end; -1: not an array of addresses, or one far longer than any stack,
 * because a file may contain anything. */
#define ADDRESS_READ_MAX 65536
int address_reader_next(struct address_reader *reader, uint64_t *address);

/* All functions as symbols (demangled) with `separator` between them. malloc'ed; NULL with *bad if
 * `stack` is not an array of addresses, without it if memory runs out. */
char *stack_text(const struct address_space *space, const char *stack, const char *separator, bool *bad);

/* The same as JSON arrays of texts: symbols, and files with lines (null where
 * nothing is known). */
char *stack_symbols(const struct address_space *space, const char *stack, bool *bad);
char *stack_lines(const struct address_space *space, const char *stack, bool *bad);

/* The line of an address in the function that contains its code, and then, innermost first, the
 * functions inlined there as file:line:function: a JSON array of texts. Without line information
 * it contains only the object's path. malloc'ed; NULL for an address in no known module, and if
 * memory runs out. */
char *address_line_with_inlines(const struct address_space *space, uint64_t address);

/* Parses a decimal or 0x number without anything around it. */
bool address_parse(const char *text, uint64_t *address);
