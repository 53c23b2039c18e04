/*
 * From an address of a trace to what a person reads: the store says which object
 * it lies in, symbol.h what stands there.
 */
#ifndef QUERYPROF_TRACE_ADDRESS_H
#define QUERYPROF_TRACE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_location;
struct symbol_frame;

/* Who says where an address lies: store_locate() unless told otherwise. A program
 * that reads the trace file of another process, where its own modules mean
 * nothing, gives a function that looks only there. NULL: store_locate() again. */
typedef bool (*address_locator)(uint64_t address, struct store_location *location);
void address_use_locator(address_locator locate);

/* Who knows frames without the programs: what a trace file has of them (embed/embed.h), as
 * symbol_frames() would tell them. NULL, as at the start: nobody. Where it knows no
 * lines, the programs are asked, too, and the answer that says more is taken. */
typedef size_t (*address_reader)(uint64_t address, struct symbol_frame *frames, size_t room);
void address_use_reader(address_reader read);

/* All texts are malloc'ed; NULL when there is no memory or, where it says so,
 * nothing to tell. Any thread that can wait, not in a signal handler: the first
 * question about an object may fetch its debug file, see symbol_fetch().
 *
 * Without a locator an address in no module is taken for code that a JIT compiler made
 * in this process (perf_map.h). */

/* The symbol's name (mangled), else "module+0x1234" with the offset in the
 * module's image; what its compiler says of JIT code. NULL for any other address in no
 * known module. */
char *address_symbol(uint64_t address);

/* "file.c:123"; without line information the path of the object. NULL for an
 * address in no known module. */
char *address_line(uint64_t address);

/* The build id of the object that the address lies in, lower-case hex; "" when it
 * has none. NULL for an address in no known module. */
char *address_build_id(uint64_t address);

/* The functions at the address, as symbol_frames() tells them: 0 when nothing is known. */
size_t address_frames(uint64_t address, struct symbol_frame *frames, size_t room);

/* Demangled symbol of one frame for people; "0x…" when nothing is known. */
char *address_text(uint64_t address);

#endif
