/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/node_heap.h"

#include <string.h>

#include "base/text.h"

#define BYTES_MAX (1u << 20)
#define SOURCE_CHARACTERS_MAX (1u << 26)
#define PARTS_DEEP_MAX 8

/* Of objects in bytes. */
enum {
	MAP_TYPE = 12,
	ARRAY_LENGTH = 8,
	ARRAY_FIRST = 16,
	TEXT_LENGTH = 12,
	TEXT_FIRST = 16,
	PARTS_FIRST = 16, /* of a text that consists of two */
	PARTS_SECOND = 24,
	SLICE_PARENT = 16,
	SLICE_OFFSET = 24,
	THIN_ACTUAL = 16,
	EXTERNAL_DATA = 24,
};

/* The type of a text. */
enum { KIND_BITS = 7, IS_NARROW = 8, IS_UNCACHED = 16 };
enum { IN_SEQUENCE, OF_PARTS, EXTERNAL, SLICE, THIN = 5 };

int32_t node_type(const struct node_reader *reader, uintptr_t object)
{
	uintptr_t map = (object & 3) == 1 ? node_field(reader, object, 0) : 0;
	uint16_t type;

	return (map & 3) == 1 && memory_read(reader->memory, map - 1 + MAP_TYPE, &type, sizeof(type)) ? type
	                                                                                              : -1;
}

uint32_t node_half_word(const struct node_reader *reader, uintptr_t at)
{
	uint32_t half;

	return memory_read(reader->memory, at, &half, sizeof(half)) ? half : 0;
}

uintptr_t node_element(const struct node_reader *reader, uintptr_t array, int64_t index)
{
	uintptr_t word;

	if (node_type(reader, array) < 0 || index < 0 ||
	    index >= node_number(node_field(reader, array, ARRAY_LENGTH)))
		return 0;
	word = node_field(reader, array, ARRAY_FIRST + (int32_t)index * (int32_t)sizeof(uintptr_t));
	return (word & 3) == 3 ? word - 2 : word;
}

/* --- bytes ---------------------------------------------------------------------------------------- */

bool node_bytes_begin(struct node_bytes *bytes, const struct node_reader *reader, uintptr_t array)
{
	int32_t type = node_type(reader, array);
	uint32_t count;

	if (type < 0 || (type != reader->layout->bytes && type != reader->layout->trusted_bytes))
		return false;
	count = (uint32_t)node_number(node_field(reader, array, ARRAY_LENGTH));
	node_bytes_begin_at(bytes, reader, array - 1 + ARRAY_FIRST, count);
	return count <= BYTES_MAX;
}

void node_bytes_begin_at(struct node_bytes *bytes, const struct node_reader *reader, uintptr_t first,
                         size_t size)
{
	bytes->reader = reader;
	bytes->at = first;
	bytes->end = first + size;
	bytes->is_over = false;
	bytes->held = first + size; /* nothing */
}

static bool read_ahead(struct node_bytes *bytes)
{
	size_t size = bytes->end - bytes->at;

	if (bytes->at >= bytes->end)
		return false;
	bytes->held = bytes->at;
	return memory_read(bytes->reader->memory, bytes->at, bytes->ahead,
	                   size < NODE_BYTES_AHEAD ? size : NODE_BYTES_AHEAD);
}

unsigned node_bytes_next(struct node_bytes *bytes)
{
	if (bytes->is_over || bytes->at >= bytes->end ||
	    (bytes->at - bytes->held >= NODE_BYTES_AHEAD && !read_ahead(bytes))) {
		bytes->is_over = true;
		bytes->at = bytes->end;
		return 0;
	}
	return bytes->ahead[bytes->at++ - bytes->held];
}

uint64_t node_bytes_next_number(struct node_bytes *bytes)
{
	uint64_t number = 0;
	unsigned byte, shift = 0;

	do {
		byte = node_bytes_next(bytes);
		number |= (uint64_t)(byte & 0x7f) << (shift & 63);
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	return number;
}

/* --- texts ---------------------------------------------------------------------------------------- */

/* Latin-1, or UTF-16. */
struct characters {
	uintptr_t first;
	uint32_t count;
	bool are_wide;
};

/* -1: it is no text. */
static int32_t text_type(const struct node_reader *reader, uintptr_t text)
{
	int32_t type = node_type(reader, text);

	return type < reader->layout->text_end ? type : -1;
}

static uint32_t text_length(const struct node_reader *reader, uintptr_t text)
{
	return node_half_word(reader, text - 1 + TEXT_LENGTH);
}

/* False: its characters are in several places. */
static bool find_characters(const struct node_reader *reader, uintptr_t text, struct characters *found)
{
	uint32_t skipped = 0, count = text_length(reader, text);

	for (int walked = 0; walked < PARTS_DEEP_MAX; walked++) {
		int32_t type = text_type(reader, text);

		if (type < 0)
			return false;
		*found = (struct characters){ text - 1 + TEXT_FIRST, count, !(type & IS_NARROW) };
		switch (type & KIND_BITS) {
		case EXTERNAL:
			found->first = node_field(reader, text, EXTERNAL_DATA);
			if (!found->first || type & IS_UNCACHED)
				return false;
			/* fallthrough */
		case IN_SEQUENCE:
			found->first += (uintptr_t)skipped << found->are_wide;
			return skipped <= text_length(reader, text) &&
			       count <= text_length(reader, text) - skipped;
		case SLICE:
			skipped += (uint32_t)node_number(node_field(reader, text, SLICE_OFFSET));
			text = node_field(reader, text, SLICE_PARENT);
			break;
		case THIN: text = node_field(reader, text, THIN_ACTUAL); break;
		case OF_PARTS:
			/* Joined since: the whole is the first part. */
			if (text_length(reader, node_field(reader, text, PARTS_SECOND)))
				return false;
			text = node_field(reader, text, PARTS_FIRST);
			break;
		default: return false;
		}
	}
	return false;
}

/* Half of a pair alone becomes the character for what is none. */
static uint32_t join_pair(uint32_t first, uint32_t second)
{
	return first < 0xdc00 && second - 0xdc00 < 0x400
	               ? 0x10000 + ((first - 0xd800) << 10) + second - 0xdc00
	               : 0xfffd;
}

static uint32_t next_character(struct node_bytes *bytes, bool is_wide)
{
	uint32_t low = node_bytes_next(bytes);

	return is_wide ? low | node_bytes_next(bytes) << 8 : low;
}

static size_t put_characters(const struct node_reader *reader, const struct characters *from, char *to,
                             size_t room)
{
	struct node_bytes bytes;
	size_t size = 0;

	node_bytes_begin_at(&bytes, reader, from->first, (size_t)from->count << from->are_wide);
	while (node_bytes_are_left(&bytes) && size + 4 <= room) {
		uint32_t character = next_character(&bytes, from->are_wide);

		if (character - 0xd800 < 0x800) {
			uintptr_t after = bytes.at;

			character = join_pair(character,
			                      node_bytes_are_left(&bytes) ? next_character(&bytes, true) : 0);
			if (character < 0x10000)
				bytes.at = after;
		}
		size += text_put_character(to + size, character);
	}
	return bytes.is_over ? 0 : size;
}

size_t node_text(const struct node_reader *reader, uintptr_t text, char *to, size_t room)
{
	uintptr_t parts[PARTS_DEEP_MAX] = { text };
	struct characters characters;
	size_t size = 0;
	int32_t type;

	for (int left = 1, walked = 0; left && walked < 2 * PARTS_DEEP_MAX; walked++) {
		text = parts[--left];
		type = text_type(reader, text);
		if (type < 0)
			return 0;
		if (find_characters(reader, text, &characters)) {
			size += put_characters(reader, &characters, to + size, room - size);
		} else if ((type & KIND_BITS) == OF_PARTS && left + 2 <= PARTS_DEEP_MAX) {
			parts[left++] = node_field(reader, text, PARTS_SECOND);
			parts[left++] = node_field(reader, text, PARTS_FIRST);
		} else {
			return 0;
		}
	}
	return size;
}

/* --- lines ---------------------------------------------------------------------------------------- */

/* "\r\n" ends one line. */
static bool is_line_end(uint32_t character, uint32_t next)
{
	return character == '\n' || (character == '\r' && next != '\n') || character == 0x2028 ||
	       character == 0x2029;
}

uint32_t node_text_line(const struct node_reader *reader, uintptr_t text, uint32_t position)
{
	enum { CHUNK = 512 };
	struct characters source;
	uint32_t line = 1;
	union {
		unsigned char narrow[CHUNK];
		uint16_t wide[CHUNK];
	} chunk;

	if (text_type(reader, text) < 0 || !find_characters(reader, text, &source) ||
	    position > source.count || position > SOURCE_CHARACTERS_MAX)
		return 0;
	for (uint32_t at = 0, count; at < position; at += count) {
		count = position - at < CHUNK - 1 ? position - at : CHUNK - 1;
		/* One more, which tells what follows the last. */
		if (!memory_read(reader->memory, source.first + ((uintptr_t)at << source.are_wide), &chunk,
		                 (size_t)(count + (at + count < source.count)) << source.are_wide))
			return 0;
		for (uint32_t i = 0; i < count; i++)
			line += source.are_wide ? is_line_end(chunk.wide[i], chunk.wide[i + 1])
			                        : is_line_end(chunk.narrow[i], chunk.narrow[i + 1]);
	}
	return line;
}
