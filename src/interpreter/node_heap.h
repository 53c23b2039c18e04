/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's objects: a word is a pointer with the tag 1, or a small integer in its upper half. An object begins
 * with its map, which has its type. Each reading is checked, and no pointer is followed before the type was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpreter/memory.h"
#include "interpreter/node_layout.h"

#define NODE_BYTES_AHEAD 64u

struct node_reader {
	const struct node_layout *layout;
	struct memory *memory;
};

/* -1: it is no object. */
int32_t node_type(const struct node_reader *reader, uintptr_t object);

/* A word of an object; 0: unreadable. */
static inline uintptr_t node_field(const struct node_reader *reader, uintptr_t object, int32_t offset)
{
	return memory_word(reader->memory, object - 1 + (uintptr_t)(intptr_t)offset);
}

static inline bool node_is_number(uintptr_t word)
{
	return !(word & 1);
}

static inline int32_t node_number(uintptr_t word)
{
	return (int32_t)(word >> 32);
}

/* Of an array: a number, or an object, to which a reference may be weak. 0: there is none. */
uintptr_t node_element(const struct node_reader *reader, uintptr_t array, int64_t index);

/* 0: unreadable. */
uint32_t node_half_word(const struct node_reader *reader, uintptr_t at);

/* In UTF-8, cut to `room`. 0: it is empty, or no text. */
size_t node_text(const struct node_reader *reader, uintptr_t text, char *to, size_t room);

/* The line, from 1 on, of the character of a source; 0: not known. */
uint32_t node_text_line(const struct node_reader *reader, uintptr_t text, uint32_t position);

/* Bytes that are read one after another. After their end, or if one is unreadable: zeros, and `is_over`. */
struct node_bytes {
	const struct node_reader *reader;
	uintptr_t at, end;
	bool is_over;
	uintptr_t held; /* where the bytes that were read ahead are; `at` may be moved out of them */
	unsigned char ahead[NODE_BYTES_AHEAD];
};

/* Of an array of bytes. False: it is none. */
bool node_bytes_begin(struct node_bytes *bytes, const struct node_reader *reader, uintptr_t array);
void node_bytes_begin_at(struct node_bytes *bytes, const struct node_reader *reader, uintptr_t first,
                         size_t size);
unsigned node_bytes_next(struct node_bytes *bytes);
uint64_t node_bytes_next_number(struct node_bytes *bytes);

static inline bool node_bytes_are_left(const struct node_bytes *bytes)
{
	return bytes->at < bytes->end;
}
