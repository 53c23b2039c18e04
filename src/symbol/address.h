/*
 * From an address of a trace to what a person reads: the store says which object
 * it lies in, symbol.h what stands there.
 */
#ifndef QUERYPROF_SYMBOL_ADDRESS_H
#define QUERYPROF_SYMBOL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct store_location;

/* Who says where an address lies: store_locate() unless told otherwise. A program
 * that reads the trace file of another process, where its own modules mean
 * nothing, gives a function that looks only there. NULL: store_locate() again. */
typedef bool (*address_locator)(uint64_t address, struct store_location *location);
void address_use_locator(address_locator locate);

/* All results are malloc'ed; NULL when there is no memory or, where it says so,
 * nothing to tell. Any thread, not in a signal handler. */

/* The symbol's name (mangled), else "module+0x1234" with the offset in the
 * module's image. NULL for an address in no known module. */
char *address_symbol(uint64_t address);

/* "file.c:123"; without line information the path of the object. NULL for an
 * address in no known module. */
char *address_line(uint64_t address);

/* Demangled symbol of one frame for people; "0x…" when nothing is known. */
char *address_text(uint64_t address);

#endif
