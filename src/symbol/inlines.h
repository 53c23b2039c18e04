/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions a compiler put into which, from the DWARF of one compilation unit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/extent.h"
#include "symbol/frame.h"
#include "symbol/libdw.h"

/* One thread at a time uses these functions, for all units together. */
struct inlines;

/* Counts one more range of addresses that is read. False: there are more than the file can have, which
 * has bytes for each. Lists that many entries name would take any time and memory. */
static inline bool inlines_may_read(uint64_t *ranges_left)
{
	return *ranges_left && (*ranges_left)--;
}

/* NULL when there is no memory, or there are too many ranges. `ranges_left` is used until the end. */
struct inlines *inlines_open(const struct libdw *libdw, Dwarf_Die *unit, uint64_t *ranges_left);
void inlines_close(struct inlines *inlines);

/* The frames at the address, see symbol_frames(); the line of the first one is left
 * unknown. All strings are the DWARF's. Cuts the extent. */
size_t inlines_find(struct inlines *inlines, uint64_t address, struct symbol_frame *frames, size_t room,
                    struct extent *extent);
