/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a process that is gone, in memory that was shared with it. Its producers and
 * its reader have stopped at any of their instructions. After ring_remains_repair() it is a
 * ring like any other, to be read with the functions of ring_reader.h.
 *
 * The reader keeps what it has read until it is stored: `taken` follows `next` then, and the
 * room is free after that. A record that was reserved at the end of the process can be recognised:
 * its header says its size, and where the header was not written yet, all words up to the
 * next header are zero.
 */
#ifndef QUERYPROF_SAMPLER_RING_REMAINS_H
#define QUERYPROF_SAMPLER_RING_REMAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

/* The ring that was placed at `memory`, of which `size` bytes are mapped. NULL: what is there
 * cannot be one. */
struct ring *ring_remains_find(void *memory, size_t size);

/* The process runs. Whether all that is committed can be read, as the headers say. */
bool ring_remains_sound(struct ring *ring);

/* Whether nothing is left that could be read. */
bool ring_remains_empty(const struct ring *ring);

/* True when the reader was about to store a batch, `*batch`: only the file shows whether the
 * reader did. */
bool ring_remains_announced(const struct ring *ring, uint64_t *batch);

/* Reading begins at the first record that was not stored, which is behind the announced batch
 * if that is stored. Records that were never committed are made padding, and their number
 * is the result. */
size_t ring_remains_repair(struct ring *ring, bool announced_is_stored);

#endif
