/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of another process, in memory that is shared with it: of one that is gone, whose producers and
 * reader have stopped at any of their instructions, or of one that runs. It is read in a copy, which is the
 * caller's alone. After ring_remains_repair(), or ring_remains_copy_committed(), the copy is a ring like any
 * other, to be read with the functions of ring_reader.h.
 *
 * The reader keeps what it has read until it is stored: `taken` follows `next` then, and the
 * room is free after that. A record that was reserved at the end of the process can be recognised:
 * its header says its size, and where the header was not written yet, all words up to the
 * next header are zero.
 */
#ifndef QUERYPROF_COLLECT_RING_REMAINS_H
#define QUERYPROF_COLLECT_RING_REMAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

/* The ring at `memory`, which has `size` bytes, the first RING_FRONT of them copied already. NULL: what is
 * there cannot be one. */
struct ring *ring_remains_find(void *memory, size_t size);

/* Copies so many bytes of the other process's ring to this place of the copy. False: it cannot. */
typedef bool (*ring_copy_function)(void *context, const void *at, size_t size);

/* Copies all that was not stored for sure, for ring_remains_repair(). False: it cannot. */
bool ring_remains_copy(struct ring *ring, ring_copy_function copy, void *context);

/* The process runs: copies what is committed, which can be read then. False: it cannot. */
bool ring_remains_copy_committed(struct ring *ring, ring_copy_function copy, void *context);

/* Whether all that is committed can be read, as the headers say. */
bool ring_remains_sound(struct ring *ring);

/* Whether nothing is left that could be read. */
bool ring_remains_empty(const struct ring *ring);

/* Reading begins at the first record that was not stored. Records that were never committed are made padding,
 * and their number is the result. */
size_t ring_remains_repair(struct ring *ring);

/* The records between these positions are stored: frees their room in the other process's ring at `memory`,
 * of which nothing is read. */
void ring_remains_free(void *memory, const struct ring *copy, uint64_t tail, uint64_t new_tail);

#endif
