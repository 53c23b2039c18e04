/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of protocol buffers, packed by hand, for messages that occur millions of times.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Tag of a field that is a number, and of one that is bytes preceded by their size. */
#define PROTOBUF_NUMBER(field) ((field) << 3)
#define PROTOBUF_BYTES(field) ((field) << 3 | 2)

#define PROTOBUF_NUMBER_MAX 10 /* bytes */

/* Returns the end. */
static inline uint8_t *protobuf_put(uint8_t *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*to++ = (uint8_t)number | 0x80;
	*to++ = (uint8_t)number;
	return to;
}

static inline uint8_t *protobuf_put_bytes(uint8_t *to, uint8_t tag, size_t size)
{
	*to++ = tag;
	return protobuf_put(to, size);
}

static inline size_t protobuf_size(uint64_t number)
{
	size_t size = 1;

	for (; number >= 0x80; number >>= 7)
		size++;
	return size;
}
