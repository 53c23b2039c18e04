/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/node_position.h"

#define ARRAY_LENGTH 8 /* bytes from an array's beginning */

/* The first bytecodes make the operands of the next one wider: the odd ones to four bytes, the others to two.
 */
enum { PREFIXES = 4 };

static int64_t next_signed_number(struct node_bytes *bytes)
{
	uint64_t number = node_bytes_next_number(bytes);

	return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

/* The step to the next entry. Whether it begins a statement is the number's sign or, since V8 14, a bit of
 * two. */
static int64_t next_step(struct node_bytes *bytes)
{
	int64_t step;

	if (bytes->reader->layout->version->major >= 14)
		return (int64_t)(node_bytes_next_number(bytes) >> 2);
	step = next_signed_number(bytes);
	return step < 0 ? -(step + 1) : step;
}

bool node_position_find(const struct node_reader *reader, uintptr_t table, int64_t offset, uint64_t *position)
{
	struct node_bytes bytes;
	int64_t at = -1;
	bool is_found = false;

	if (!node_bytes_begin(&bytes, reader, table))
		return false;
	for (*position = 0; node_bytes_are_left(&bytes); is_found = true) {
		at += next_step(&bytes);
		if (at > offset)
			break;
		*position += (uint64_t)next_signed_number(&bytes);
	}
	return is_found && !bytes.is_over;
}

int32_t node_position_bytecodes(const struct node_reader *reader, uintptr_t bytecodes)
{
	return node_number(node_field(reader, bytecodes, ARRAY_LENGTH));
}

int32_t node_position_of_bytecode(const struct node_reader *reader, uintptr_t bytecodes, int64_t offset)
{
	uint64_t position;

	return node_type(reader, bytecodes) == reader->layout->bytecodes &&
	                       offset < node_position_bytecodes(reader, bytecodes) &&
	                       node_position_find(reader,
	                                          node_field(reader, bytecodes,
	                                                     reader->layout->version->bytecode_positions),
	                                          offset, &position)
	               ? node_position_in_source(position)
	               : -1;
}

/* 0: unknown. */
static unsigned size_of_next(struct node_bytes *bytes)
{
	const char *sizes = bytes->reader->layout->version->bytecode_sizes;
	unsigned bytecode = node_bytes_next(bytes), scale = 1, size = 0, i;

	if (bytecode < PREFIXES) {
		scale = bytecode & 1 ? 4 : 2;
		bytecode = node_bytes_next(bytes);
		size = 1;
	}
	for (i = 0; sizes[i] && i < bytecode; i++)
		;
	if (!sizes[i] || bytes->is_over)
		return 0;
	return size + (unsigned)(sizes[i] - '0') % 8 + (unsigned)(sizes[i] - '0') / 8 * (scale - 1);
}

static bool skip_bytecode(struct node_bytes *bytecodes)
{
	uintptr_t at = bytecodes->at;
	unsigned size = size_of_next(bytecodes);

	bytecodes->at = at + size;
	return size && bytecodes->at <= bytecodes->end;
}

/* The first compiler translates each bytecode alone, and writes down how many bytes of instructions each has,
 * after those of the function's beginning. Both lists must end together, so wrong sizes are noticed. */
int64_t node_position_bytecode(const struct node_reader *reader, uintptr_t bytecodes, uintptr_t table,
                               uint64_t offset)
{
	const uintptr_t first = bytecodes - 1 + (uintptr_t)reader->layout->bytecodes_first;
	struct node_bytes codes, steps;
	int64_t found = -1;
	uint64_t end;

	node_bytes_begin_at(&codes, reader, first, (uint32_t)node_position_bytecodes(reader, bytecodes));
	if (!node_bytes_begin(&steps, reader, table))
		return -1;
	for (end = node_bytes_next_number(&steps); node_bytes_are_left(&codes);
	     end += node_bytes_next_number(&steps)) {
		if (end < offset)
			found = (int64_t)(codes.at - first);
		if (!skip_bytecode(&codes))
			return -1;
	}
	return offset <= end && !steps.is_over && !node_bytes_are_left(&steps) ? found : -1;
}
