/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of another process, in memory shared with it. The process has ended, with its producers
 * and reader stopped at any instruction, or it still runs. The ring is read in a private copy of the
 * caller. After ring_remains_repair() or ring_remains_copy_committed(), the copy is a normal ring for
 * the functions of ring_reader.h.
 *
 * The reader keeps what it has read until it is stored; then `taken` follows `next`, and the space is
 * free. A record that was only reserved when the process ended can be recognised: its header has its
 * size, and if the header was not written yet, all words up to the next header are zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

/* The ring at `memory`, which has `size` bytes, of which the first RING_FRONT are already copied.
 * NULL: the content cannot be a ring. */
struct ring *ring_remains_find(void *memory, size_t size);

/* Copies `bytes` of the other process's ring to this position of the copy. False: it cannot. */
typedef bool (*ring_copy_function)(void *context, const void *at, size_t size);

/* Copies everything that may not have been stored, for ring_remains_repair(). False: it cannot. */
bool ring_remains_copy(struct ring *ring, ring_copy_function copy, void *context);

/* The process runs: copies the committed records, which can then be read. False: it cannot. */
bool ring_remains_copy_committed(struct ring *ring, ring_copy_function copy, void *context);

/* Whether the headers allow reading all committed records. */
bool ring_remains_sound(struct ring *ring);

/* Whether nothing is left that could be read. */
bool ring_remains_empty(const struct ring *ring);

/* Reading begins at the first record that was not stored. Records that were never committed are made padding,
 * and their number is the result. */
size_t ring_remains_repair(struct ring *ring);

/* The records between these positions are stored: frees their room in the other process's ring at `memory`,
 * of which nothing is read. */
void ring_remains_free(void *memory, const struct ring *copy, uint64_t tail, uint64_t new_tail);
