/*
 * The address space of this process's own trace file.
 */
#ifndef QUERYPROF_TRACE_PROCESS_SPACE_H
#define QUERYPROF_TRACE_PROCESS_SPACE_H

#include "trace/address.h"

/* Knows the modules of the file, those that are mapped now, and what a JIT compiler in this
 * process wrote into its map (perf_map.h). */
const struct address_space *process_space(void);

/* For a program that reads one trace file and has none of its own: until they are NULL
 * again, these are used instead. */
typedef bool (*address_locator)(uint64_t address, struct store_location *location);
void address_use_locator(address_locator locate);
typedef size_t (*address_reader)(uint64_t address, struct symbol_frame *frames, size_t room);
void address_use_reader(address_reader read);

#endif
