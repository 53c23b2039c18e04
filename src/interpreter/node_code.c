/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/node_code.h"

#include <stdbool.h>

#include "interpreter/node_deopt.h"

#define CODE_BYTES_MAX (1u << 18)
#define CODE_ALIGNMENT 32u
#define CODE_KINDS 15u
#define BYTECODES_MAX (1 << 20)

/* Of frames and objects in bytes. */
enum {
	FRAME_BYTECODES = -32,
	FRAME_BYTECODE = -40,
	STREAM_CODE = 8,
	ARRAY_LENGTH = 8,
	ARRAY_FIRST = 16,
	INLINED_BYTES = 16, /* of an entry: the position of the call, and the function's index */
	INLINED_FUNCTION = 8,
};

/* A position has the character after the one that is meant, and the inlined function that it belongs to. */
enum { POSITION_IS_EXTERNAL = 1, POSITION_SHIFT = 1, POSITION_BITS = 30, INLINED_SHIFT = 31 };

/* The first bytecodes make the operands of the next one wider: the odd ones to four bytes, the others to two.
 */
enum { PREFIXES = 4 };

/* The map of objects that contain instructions, which is the same for all. Atomic; 0: not known. */
static uintptr_t stream_map;

static int32_t position_in_source(uint64_t position)
{
	return position & POSITION_IS_EXTERNAL
	               ? -1
	               : (int32_t)(position >> POSITION_SHIFT & ((1u << POSITION_BITS) - 1)) - 1;
}

static unsigned inlined_in(uint64_t position)
{
	return position >> INLINED_SHIFT & 0xffff;
}

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

/* The position of the newest entry that is not after `offset`; false: there is none. */
static bool find_position(const struct node_reader *reader, uintptr_t table, int64_t offset,
                          uint64_t *position)
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

/* --- bytecode ------------------------------------------------------------------------------------- */

static int32_t count_bytecodes(const struct node_reader *reader, uintptr_t bytecodes)
{
	return node_number(node_field(reader, bytecodes, ARRAY_LENGTH));
}

int32_t node_bytecode_position(const struct node_reader *reader, uintptr_t bytecodes, int64_t offset)
{
	uint64_t position;

	return node_type(reader, bytecodes) == reader->layout->bytecodes &&
	                       offset < count_bytecodes(reader, bytecodes) &&
	                       find_position(reader,
	                                     node_field(reader, bytecodes,
	                                                reader->layout->version->bytecode_positions),
	                                     offset, &position)
	               ? position_in_source(position)
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
 * after those of the function's beginning. Both lists must end together, so wrong sizes are noticed. -1: not
 * known. */
static int64_t bytecode_of_instruction(const struct node_reader *reader, uintptr_t bytecodes, uintptr_t table,
                                       uint64_t offset)
{
	const uintptr_t first = bytecodes - 1 + (uintptr_t)reader->layout->bytecodes_first;
	struct node_bytes codes, steps;
	int64_t found = -1;
	uint64_t end;

	node_bytes_begin_at(&codes, reader, first, (uint32_t)count_bytecodes(reader, bytecodes));
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

/* --- compiled code -------------------------------------------------------------------------------- */

static bool is_stream(const struct node_reader *reader, uintptr_t at, uintptr_t map)
{
	/* Relaxed: an independent word. */
	uintptr_t known = __atomic_load_n(&stream_map, __ATOMIC_RELAXED);

	return known ? map == known : (map & 3) == 1 && node_type(reader, at + 1) == reader->layout->stream;
}

static uintptr_t code_start(const struct node_reader *reader, uintptr_t code)
{
	unsigned start = reader->layout->version->code_start;

	return start ? node_field(reader, code, (int32_t)start)
	             : code - 1 + (uintptr_t)reader->layout->stream_start;
}

static uint32_t code_half_word(const struct node_reader *reader, uintptr_t code, unsigned offset)
{
	return node_half_word(reader, code - 1 + offset);
}

/* 0: there is none. */
static uintptr_t find_code(const struct node_reader *reader, uintptr_t instruction)
{
	const struct node_layout *layout = reader->layout;
	uintptr_t at = instruction - instruction % CODE_ALIGNMENT - (uintptr_t)layout->stream_start;
	uintptr_t map, code;

	for (; instruction - at < CODE_BYTES_MAX; at -= CODE_ALIGNMENT) {
		if (!memory_read(reader->memory, at, &map, sizeof(map)))
			return 0;
		if (!is_stream(reader, at, map))
			continue;
		code = layout->stream == layout->code ? at + 1 : node_field(reader, at + 1, STREAM_CODE);
		if (node_type(reader, code) != layout->code ||
		    code_start(reader, code) != at + (uintptr_t)layout->stream_start)
			continue;
		__atomic_store_n(&stream_map, map, __ATOMIC_RELAXED);
		return instruction - code_start(reader, code) <=
		                       code_half_word(reader, code, layout->version->code_size)
		               ? code
		               : 0;
	}
	return 0;
}

/* The function that was inlined as the `number`-th, and in `*position` where it was called. 0: not known. */
static uintptr_t inlined_function(const struct node_reader *reader, uintptr_t deoptimization, unsigned number,
                                  uint64_t *position)
{
	uintptr_t literals = node_element(reader, deoptimization, reader->layout->inlined_literals), function;
	struct node_bytes calls;

	if (!node_bytes_begin(&calls, reader,
	                      node_element(reader, deoptimization, reader->layout->inlined_positions)) ||
	    (uintptr_t)number * INLINED_BYTES > calls.end - calls.at)
		return 0;
	calls.at += (uintptr_t)(number - 1) * INLINED_BYTES;
	*position = memory_word(reader->memory, calls.at);
	function =
		node_element(reader, literals, (int32_t)node_half_word(reader, calls.at + INLINED_FUNCTION));
	return node_type(reader, function) == reader->layout->shared ? function : 0;
}

/* By the positions of TurboFan's code, which are complete before V8 13. */
static unsigned inlined_places(const struct node_reader *reader, const struct node_frame *frame,
                               uintptr_t code, struct node_place places[NODE_PLACES_MAX])
{
	const struct node_version *version = reader->layout->version;
	uintptr_t deoptimization = node_field(reader, code, version->code_deoptimization);
	unsigned count = 0, inlined;
	uint64_t position;

	/* The call is before the instruction that follows it. */
	if (!find_position(reader, node_field(reader, code, version->code_positions),
	                   (int64_t)(frame->next - 1 - code_start(reader, code)), &position))
		return 0;
	while ((inlined = inlined_in(position))) {
		int32_t in_source = position_in_source(position);
		uintptr_t shared = inlined_function(reader, deoptimization, inlined, &position);

		/* An inlined function was called by the code of an earlier one. */
		if (!shared || inlined_in(position) >= inlined || count >= NODE_PLACES_MAX - 1)
			return 0;
		places[count++] = (struct node_place){ shared, in_source };
	}
	places[count++] = (struct node_place){ frame->shared, position_in_source(position) };
	return count;
}

static unsigned optimized_places(const struct node_reader *reader, const struct node_frame *frame,
                                 uintptr_t code, uint32_t kind, struct node_place places[NODE_PLACES_MAX])
{
	const struct node_version *version = reader->layout->version;
	uintptr_t start = code_start(reader, code);
	const struct node_call call = {
		.code = code,
		.table = start + code_half_word(reader, code, version->code_size),
		.offset = (uint32_t)(frame->next - start),
		.is_maglev = kind == (uint32_t)reader->layout->baseline + 1,
	};
	unsigned count;

	if (version->major < 13)
		return call.is_maglev ? 0 : inlined_places(reader, frame, code, places);
	count = node_deopt_places(reader, &call, places);
	return count && places[count - 1].shared == frame->shared ? count : 0;
}

unsigned node_places(const struct node_reader *reader, const struct node_frame *frame,
                     struct node_place places[NODE_PLACES_MAX])
{
	const struct node_layout *layout = reader->layout;
	uintptr_t bytecodes = memory_word(reader->memory, frame->at + (uintptr_t)(intptr_t)FRAME_BYTECODES);
	uintptr_t bytecode = memory_word(reader->memory, frame->at + (uintptr_t)(intptr_t)FRAME_BYTECODE);
	bool is_builtin = frame->next - frame->builtins < frame->builtins_size ||
	                  frame->next - frame->copied < frame->copied_size;
	uintptr_t code = is_builtin ? 0 : find_code(reader, frame->next);
	int64_t offset = node_number(bytecode) - (layout->bytecodes_first - 1);
	uint32_t kind;

	places[0] = (struct node_place){ frame->shared, -1 };
	if (!is_builtin && !code)
		return 0;
	kind = code ? code_half_word(reader, code, layout->version->code_flags) & CODE_KINDS : 0;
	if (code && kind > (uint32_t)layout->baseline)
		return optimized_places(reader, frame, code, kind, places);
	if (code && kind < (uint32_t)layout->baseline)
		return 0;
	if (node_type(reader, bytecodes) != layout->bytecodes ||
	    (uint32_t)count_bytecodes(reader, bytecodes) > BYTECODES_MAX)
		return 1;
	if (code)
		offset = bytecode_of_instruction(reader, bytecodes,
		                                 node_field(reader, code, layout->version->code_positions),
		                                 frame->next - code_start(reader, code));
	else if (!node_is_number(bytecode))
		return 1;
	if (offset >= 0)
		places[0].position = node_bytecode_position(reader, bytecodes, offset);
	return 1;
}
