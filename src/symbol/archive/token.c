/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoded instruction as a token for the comparison of two compilations of one source.
 *
 * The hash of an instruction leaves out the one displacement that a linker fills or that
 * the layout of neighbours changes. Short and long forms of a jump count as the same, and
 * so do an address that is computed and one that is read from the offset table.
 */
#include "symbol/archive/token.h"

#include <string.h>

#include "base/x86_64.h"

static uint32_t mix(uint32_t hash, uint32_t value)
{
	return (hash ^ value) * UINT32_C(0x01000193);
}

/* Up to 8 bytes as a number; in one load where 8 can be read. */
static uint64_t read_bytes(const unsigned char *bytes, size_t count, bool has_eight)
{
	uint64_t number = 0;
	if (!has_eight) {
		while (count-- > 0)
			number = number << 8 | bytes[count];
		return number;
	}
	memcpy(&number, bytes, sizeof(number));
	return count < 8 ? number & ((UINT64_C(1) << (8 * count)) - 1) : number;
}

/* `count` is 15 at most, an instruction's bytes: this runs for every instruction there is. */
static uint32_t hash_bytes(uint32_t hash, const unsigned char *bytes, size_t count, size_t room)
{
	uint64_t first = read_bytes(bytes, count < 8 ? count : 8, room >= 8);
	uint64_t second = count > 8 ? read_bytes(bytes + 8, count - 8, room >= 16) : 0;
	uint64_t word = (first ^ hash) * UINT64_C(0x9e3779b97f4a7c15);
	word = (word ^ word >> 32 ^ second ^ (uint64_t)count << 56) * UINT64_C(0xff51afd7ed558ccd);
	return (uint32_t)(word >> 32);
}

/* Operations that have several encodings. */
enum { SAME_JUMP = 0x10000, SAME_CALL = 0x20000, SAME_ADDRESS = 0x30000 };

static uint32_t hash_same(uint32_t operation, uint32_t detail)
{
	return mix(mix(UINT32_C(0x811c9dc5), operation), detail);
}

static void judge_branch(struct code_instruction *judged, const struct x86_instruction *decoded)
{
	uint8_t opcode = decoded->opcode;
	judged->kind = CODE_BRANCH;
	if (decoded->map == X86_ONE_BYTE && opcode == 0xe8)
		judged->hash = hash_same(SAME_CALL, 0);
	else if (decoded->map == X86_ONE_BYTE && (opcode == 0xe9 || opcode == 0xeb))
		judged->hash = hash_same(SAME_JUMP, 0x100);
	else if (decoded->map == X86_0F || (opcode & 0xf0) == 0x70)
		judged->hash = hash_same(SAME_JUMP, opcode & 15);
	else
		judged->hash = hash_same(SAME_JUMP, 0x200u + opcode);
}

/* The operand is relative to the instruction pointer. */
static void judge_memory(struct code_instruction *judged, const struct x86_instruction *decoded)
{
	unsigned number = x86_register(decoded);
	bool is_wide = decoded->rex & 8;
	judged->kind = CODE_MEMORY;
	if (decoded->map != X86_ONE_BYTE || decoded->is_vector)
		return;
	if (decoded->opcode == 0x8d && is_wide) {
		judged->hash = hash_same(SAME_ADDRESS, number);
	} else if (decoded->opcode == 0x8b && is_wide) {
		judged->kind = CODE_SLOT;
		judged->slot_hash = hash_same(SAME_ADDRESS, number);
	} else if (decoded->opcode == 0xff && ((number & 7) == 2 || (number & 7) == 4)) {
		judged->kind = CODE_SLOT;
		judged->slot_hash = (number & 7) == 2 ? hash_same(SAME_CALL, 0) : hash_same(SAME_JUMP, 0x100);
	}
}

static bool is_padding(const struct x86_instruction *decoded)
{
	if (decoded->is_vector)
		return false;
	if (decoded->map == X86_0F && decoded->opcode == 0x1f && ((decoded->operand >> 3) & 7) == 0)
		return true;
	return decoded->map == X86_ONE_BYTE && decoded->opcode == 0x90 && !decoded->has_repeat &&
	       !(decoded->rex & 1);
}

bool code_decode(const unsigned char *bytes, size_t size, struct code_instruction *judged)
{
	struct x86_instruction decoded;
	*judged = (struct code_instruction){ 0 };
	if (!x86_decode(bytes, size, &decoded))
		return false;
	judged->length = decoded.length;
	judged->field = decoded.field;
	judged->field_size = decoded.field_size;
	if (is_padding(&decoded)) {
		judged->kind = CODE_PADDING;
		return true;
	}
	if (!decoded.field) {
		judged->hash = hash_bytes(UINT32_C(0x811c9dc5), bytes, decoded.length, size);
		/* An absolute address of code that is not position-independent. */
		if (decoded.has_wide_value && !(decoded.rex & 8) && !decoded.has_short) {
			judged->kind = CODE_ABSOLUTE;
			judged->field = decoded.constants;
			judged->field_size = 4;
			judged->slot_hash =
				hash_same(SAME_ADDRESS, (decoded.opcode & 7u) | (decoded.rex & 1 ? 8u : 0u));
		}
		return true;
	}
	size_t rest = (size_t)decoded.field + decoded.field_size;
	judged->hash = hash_bytes(UINT32_C(0x811c9dc5), bytes, decoded.field, size);
	if (rest < decoded.length)
		judged->hash = hash_bytes(judged->hash, bytes + rest, decoded.length - rest, size - rest);
	if (decoded.is_branch)
		judge_branch(judged, &decoded);
	else
		judge_memory(judged, &decoded);
	return true;
}
