/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of entries in memory that another process also holds (handover/shared_ring.h). This process
 * acquires entries, which are permanent. The other process reads copies of the part that is in use.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/shared_front.h"

struct shared_entries {
	uint32_t most;
	size_t front, size;       /* bytes before the first entry, and of each */
	size_t state, state_size; /* the place of a word of an entry that no two states share */
	/* In the process of the entries. */
	struct shared_front *here; /* atomic; NULL: there is no such memory */
	uint32_t used; /* atomic: of this process, as a child's entries are at the same addresses */
};

/* A table of `type`, which begins with a struct shared_front and ends with the array `entries`. */
#define SHARED_ENTRIES(type, member)                                                                         \
	{                                                                                                    \
		.most = sizeof(((type *)0)->entries) / sizeof(((type *)0)->entries[0]),                      \
		.front = offsetof(type, entries), .size = sizeof(((type *)0)->entries[0]),                   \
		.state = offsetof(type, entries[0].member) - offsetof(type, entries),                        \
		.state_size = sizeof(((type *)0)->entries[0].member)                                         \
	}

size_t shared_entries_bytes(const struct shared_entries *entries);

/* --- in the process of the entries ---------------------------------------------------------------------- */

/* `memory`: shared_entries_bytes() of zeros, which stay. In a forked child again, at the same address. */
void shared_entries_attach(struct shared_entries *entries, void *memory);

/* In a forked child that gets no such memory, and might otherwise write into its parent's. */
void shared_entries_detach_in_child(struct shared_entries *entries);

/* A new entry; NULL: there is no such memory, or it is full. */
void *shared_entries_acquire(struct shared_entries *entries);

/* --- in the other process, which has copies ------------------------------------------------------- */

uint32_t shared_entries_count(const struct shared_entries *entries, const void *copy);

/* Bytes of the part that is in use, by the first `front` of them. */
size_t shared_entries_used_bytes(const struct shared_entries *entries, const void *copy);

/* Zeroes the word in each entry of the copy in which an earlier copy and a later one differ, because it may
 * be of two states. Returns how many these are. */
uint32_t shared_entries_keep_steady(const struct shared_entries *entries, void *copy, const void *earlier,
                                    const void *later);
