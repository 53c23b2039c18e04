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
	INLINED_BYTES = 16, /* of an entry: the position of the call, and the function's index */
	INLINED_FUNCTION = 8,
};

/* The map of objects that contain instructions, which is the same for all. Atomic; 0: not known. */
static uintptr_t stream_map;

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

/* The inlined function with this number. `*position`: the place of its call. 0: not known. */
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
	if (!node_position_find(reader, node_field(reader, code, version->code_positions),
	                        (int64_t)(frame->next - 1 - code_start(reader, code)), &position))
		return 0;
	while ((inlined = node_position_inlined(position))) {
		int32_t in_source = node_position_in_source(position);
		uintptr_t shared = inlined_function(reader, deoptimization, inlined, &position);

		/* An inlined function was called by the code of an earlier one. */
		if (!shared || node_position_inlined(position) >= inlined || count >= NODE_PLACES_MAX - 1)
			return 0;
		places[count++] = (struct node_place){ shared, in_source };
	}
	places[count++] = (struct node_place){ frame->shared, node_position_in_source(position) };
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
	    (uint32_t)node_position_bytecodes(reader, bytecodes) > BYTECODES_MAX)
		return 1;
	if (code)
		offset = node_position_bytecode(reader, bytecodes,
		                                node_field(reader, code, layout->version->code_positions),
		                                frame->next - code_start(reader, code));
	else if (!node_is_number(bytecode))
		return 1;
	if (offset >= 0)
		places[0].position = node_position_of_bytecode(reader, bytecodes, offset);
	return 1;
}
