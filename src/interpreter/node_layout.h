/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where V8 keeps what a call stack needs. Its objects differ between versions, but V8 publishes most offsets
 * and types as constants (`v8dbg_…`) for debuggers. The rest belongs to the version: a table has it for each
 * V8 of node 18 to 26.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#define NODE_EXIT_FRAMES 7

/* The part that V8 does not publish. */
struct node_version {
	uint8_t major, minor;
	uint8_t bytecode_positions; /* of bytecodes: their table of positions */
	uint8_t code_deoptimization, code_positions, code_start, code_flags, code_size; /* of code */
	const char *bytecode_sizes; /* a character for each: '0' + its size + 8 for each operand that grows */
};

/* Offsets in bytes from the beginning of an object, which is its pointer without the tag. -1: not published.
 */
struct node_layout {
	const struct node_version *version;

	/* Types of objects. */
	int32_t function, shared, script, scope, bytecodes, bytes, trusted_bytes, code, stream, text_end;

	int32_t function_shared;
	int32_t shared_name, shared_script;
	int32_t bytecodes_first;
	int32_t scope_first;  /* in words after the object's first */
	int32_t stream_start; /* of the object that contains instructions: the first */
	int32_t baseline;     /* the kind of code that a template of each bytecode is */
	int32_t inlined_literals, inlined_positions; /* of what deoptimization needs: indices */

	/* Kinds of frames. */
	int32_t entry, construct_entry, exits[NODE_EXIT_FRAMES];
};

/* False: it is no V8, or not understood. */
bool node_layout_read(const struct dl_phdr_info *info, struct node_layout *layout);
