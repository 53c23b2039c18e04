/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions a compiler put into which, from the DWARF of one compilation unit.
 */
#ifndef QUERYPROF_SYMBOL_INLINES_H
#define QUERYPROF_SYMBOL_INLINES_H

#include <stddef.h>
#include <stdint.h>

#include "symbol/libdw.h"
#include "symbol/frame.h"

/* One thread at a time uses these functions, for all units together. */
struct inlines;

/* NULL only when there is no memory. */
struct inlines *inlines_open(const struct libdw *libdw, Dwarf_Die *unit);
void inlines_close(struct inlines *inlines);

/* The frames at the address, see symbol_frames(); the line of the first one is left
 * unknown. All strings are the DWARF's. */
size_t inlines_find(struct inlines *inlines, uint64_t address, struct symbol_frame *frames, size_t room);

#endif
