/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables define, by opcode, what follows it; the rest of an instruction has the same form for
 * all.
 */
#include "base/x86_64.h"

#include <string.h>

/* The operands after the opcode, by opcode. */
enum {
	X = 0xff, /* no instruction, or one that no compiler emits */
	N = 0,    /* nothing */
	M = 1,    /* operand byte (ModRM) */
	B = 2,    /* 8-bit constant */
	Z = 4,    /* 16- or 32-bit constant by operand size */
	V = 8,    /* 16, 32 or 64 bits */
	W = 16,   /* 16 bits */
	J = 32,   /* jump, 8 bits away */
	K = 64,   /* jump, 32 bits away */
	P = X,    /* prefixes never get here */
};

static const uint8_t one_byte[256] = {
	/* 00 */ M,     M,     M, M,     B, Z, X,     X,     M,     M,     M, M,     B, Z, X, X,
	/* 10 */ M,     M,     M, M,     B, Z, X,     X,     M,     M,     M, M,     B, Z, X, X,
	/* 20 */ M,     M,     M, M,     B, Z, P,     X,     M,     M,     M, M,     B, Z, P, X,
	/* 30 */ M,     M,     M, M,     B, Z, P,     X,     M,     M,     M, M,     B, Z, P, X,
	/* 40 */ P,     P,     P, P,     P, P, P,     P,     P,     P,     P, P,     P, P, P, P,
	/* 50 */ N,     N,     N, N,     N, N, N,     N,     N,     N,     N, N,     N, N, N, N,
	/* 60 */ X,     X,     P, M,     P, P, P,     P,     Z,     M | Z, B, M | B, N, N, N, N,
	/* 70 */ J,     J,     J, J,     J, J, J,     J,     J,     J,     J, J,     J, J, J, J,
	/* 80 */ M | B, M | Z, X, M | B, M, M, M,     M,     M,     M,     M, M,     M, M, M, M,
	/* 90 */ N,     N,     N, N,     N, N, N,     N,     N,     N,     X, N,     N, N, N, N,
	/* a0 */ X,     X,     X, X,     N, N, N,     N,     B,     Z,     N, N,     N, N, N, N,
	/* b0 */ B,     B,     B, B,     B, B, B,     B,     V,     V,     V, V,     V, V, V, V,
	/* c0 */ M | B, M | B, W, N,     P, P, M | B, M | Z, W | B, N,     W, N,     N, B, X, N,
	/* d0 */ M,     M,     M, M,     X, X, X,     N,     M,     M,     M, M,     M, M, M, M,
	/* e0 */ J,     J,     J, J,     B, B, B,     B,     K,     K,     X, J,     N, N, N, N,
	/* f0 */ P,     N,     P, P,     N, N, M,     M,     N,     N,     N, N,     N, N, M, M,
};

static const uint8_t two_bytes[256] = {
	/* after 0f */
	/* 00 */ M,     M,     M,     M,     X,     N,     N,     N, N, N, X,     N, X,     M, N, X,
	/* 10 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* 20 */ M,     M,     M,     M,     X,     X,     X,     X, M, M, M,     M, M,     M, M, M,
	/* 30 */ N,     N,     N,     N,     N,     N,     X,     N, P, X, P,     X, X,     X, X, X,
	/* 40 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* 50 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* 60 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* 70 */ M | B, M | B, M | B, M | B, M,     M,     M,     N, M, M, M,     M, M,     M, M, M,
	/* 80 */ K,     K,     K,     K,     K,     K,     K,     K, K, K, K,     K, K,     K, K, K,
	/* 90 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* a0 */ N,     N,     N,     M,     M | B, M,     X,     X, N, N, N,     M, M | B, M, M, M,
	/* b0 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M | B, M, M,     M, M, M,
	/* c0 */ M,     M,     M | B, M,     M | B, M | B, M | B, M, N, N, N,     N, N,     N, N, N,
	/* d0 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* e0 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
	/* f0 */ M,     M,     M,     M,     M,     M,     M,     M, M, M, M,     M, M,     M, M, M,
};

struct cursor {
	const unsigned char *bytes;
	size_t size, at;
};

static void read_prefixes(struct cursor *cursor, struct x86_instruction *instruction)
{
	static const bool is_prefix[256] = {
		[0x26] = true, [0x2e] = true, [0x36] = true, [0x3e] = true, [0x64] = true, [0x65] = true,
		[0x66] = true, [0x67] = true, [0xf0] = true, [0xf2] = true, [0xf3] = true,
	};
	while (cursor->at < cursor->size && is_prefix[cursor->bytes[cursor->at]]) {
		uint8_t byte = cursor->bytes[cursor->at++];
		instruction->has_short |= byte == 0x66;
		instruction->has_repeat |= byte == 0xf2 || byte == 0xf3;
	}
	if (cursor->at < cursor->size && (cursor->bytes[cursor->at] & 0xf0) == 0x40)
		instruction->rex = cursor->bytes[cursor->at++];
}

/* VEX with one or two bytes after its first, EVEX with three, XOP with two. */
static bool read_vector_prefix(struct cursor *cursor, struct x86_instruction *instruction)
{
	uint8_t byte = cursor->bytes[cursor->at];
	size_t payload = byte == 0xc5 ? 1 : byte == 0x62 ? 3 : 2;
	if (cursor->size - cursor->at < payload + 2)
		return false;
	uint8_t map = cursor->bytes[cursor->at + 1];
	cursor->at += 1 + payload;
	instruction->is_vector = true;
	instruction->map = byte == 0xc5 ? X86_0F : byte == 0x62 ? map & 7 : map & 31;
	switch (byte) {
	case 0x62: return instruction->map != X86_ONE_BYTE && instruction->map != 4 && instruction->map != 7;
	case 0x8f: return instruction->map <= X86_XOPA;
	default: return instruction->map >= X86_0F && instruction->map <= X86_0F3A;
	}
}

/* Leaves the cursor at the opcode. */
static bool read_map(struct cursor *cursor, struct x86_instruction *instruction)
{
	if (cursor->at >= cursor->size)
		return false;
	uint8_t byte = cursor->bytes[cursor->at];
	bool is_xop = byte == 0x8f && cursor->at + 1 < cursor->size &&
	              (cursor->bytes[cursor->at + 1] & 31) >= X86_XOP8;
	if (byte == 0xc5 || byte == 0xc4 || byte == 0x62 || is_xop)
		return read_vector_prefix(cursor, instruction);
	if (byte != 0x0f)
		return true;
	instruction->map = X86_0F;
	if (++cursor->at >= cursor->size)
		return false;
	if (cursor->bytes[cursor->at] == 0x38 || cursor->bytes[cursor->at] == 0x3a) {
		instruction->map = cursor->bytes[cursor->at] == 0x38 ? X86_0F38 : X86_0F3A;
		cursor->at++;
	}
	return cursor->at < cursor->size;
}

static uint8_t form_of(uint8_t map, uint8_t opcode)
{
	switch (map) {
	case X86_ONE_BYTE: return one_byte[opcode];
	case X86_0F: return two_bytes[opcode];
	case X86_0F3A:
	case X86_XOP8: return M | B;
	case X86_XOPA: return M | Z;
	default: return M;
	}
}

/* The operand byte and what belongs to it. False: cut off. */
static bool read_operand(struct cursor *cursor, struct x86_instruction *instruction)
{
	if (cursor->at >= cursor->size)
		return false;
	instruction->operand_at = (uint8_t)cursor->at;
	instruction->operand = cursor->bytes[cursor->at++];
	uint8_t mode = instruction->operand >> 6, base = instruction->operand & 7;
	if (mode == 3)
		return true;
	if (base == 4) {
		if (cursor->at >= cursor->size)
			return false;
		base = cursor->bytes[cursor->at++] & 7;
		if (mode == 0 && base == 5)
			cursor->at += 4;
	} else if (mode == 0 && base == 5) {
		instruction->field = (uint8_t)cursor->at;
		instruction->field_size = 4;
		cursor->at += 4;
	}
	if (mode == 1)
		cursor->at += 1;
	else if (mode == 2)
		cursor->at += 4;
	return true;
}

/* The operands of an opcode that depend on its operand byte: "test" has a constant, the other
 * operations of its opcode have none; xbegin jumps. */
static uint8_t form_by_operand(const struct x86_instruction *instruction, uint8_t form)
{
	if (instruction->map != X86_ONE_BYTE)
		return form;
	switch (instruction->opcode) {
	case 0xf6: return (instruction->operand & 0x30) == 0 ? form | B : form;
	case 0xf7: return (instruction->operand & 0x30) == 0 ? form | Z : form;
	case 0xc7: return instruction->operand == 0xf8 ? M | K : form;
	default: return form;
	}
}

static void read_constants(struct cursor *cursor, struct x86_instruction *instruction, uint8_t form)
{
	/* Vector instructions use prefix 66 for another purpose, inside their own prefix. */
	size_t by_size = instruction->has_short ? 2 : 4;
	instruction->constants = (uint8_t)cursor->at;
	if (form & B)
		cursor->at += 1;
	if (form & W)
		cursor->at += 2;
	if (form & Z)
		cursor->at += by_size;
	if (form & V)
		cursor->at += instruction->rex & 8 ? 8 : by_size;
	instruction->has_wide_value = form & V;
	if (form & (J | K)) {
		instruction->is_branch = true;
		instruction->field = (uint8_t)cursor->at;
		instruction->field_size = form & J ? 1 : 4;
		cursor->at += instruction->field_size;
	}
}

bool x86_decode(const unsigned char *bytes, size_t size, struct x86_instruction *instruction)
{
	struct cursor cursor = { .bytes = bytes, .size = size < X86_BYTES_MAX ? size : X86_BYTES_MAX };
	*instruction = (struct x86_instruction){ 0 };
	read_prefixes(&cursor, instruction);
	if (!read_map(&cursor, instruction))
		return false;
	instruction->opcode = bytes[cursor.at++];
	uint8_t form = form_of(instruction->map, instruction->opcode);
	if (form == X || ((form & M) && !read_operand(&cursor, instruction)))
		return false;
	read_constants(&cursor, instruction, form_by_operand(instruction, form));
	instruction->length = (uint8_t)cursor.at;
	return cursor.at <= cursor.size;
}

uint64_t x86_address(const struct x86_instruction *instruction, const unsigned char *bytes, uint64_t address)
{
	int32_t displacement = (int8_t)bytes[instruction->field];
	if (instruction->field_size == sizeof(displacement))
		memcpy(&displacement, bytes + instruction->field, sizeof(displacement));
	return address + instruction->length + (uint64_t)(int64_t)displacement;
}
