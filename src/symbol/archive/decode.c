/*
 * How long an x86-64 instruction is and which place it names.
 *
 * No more is decoded than it takes to compare two compilations of one source: the
 * length, and the one displacement that a linker fills or that the layout of
 * neighbours changes. Short and long forms of a jump count as the same, and so do
 * an address that is computed and one that is read from the offset table.
 */
#include "symbol/archive/parts.h"

#include <string.h>

/* What follows the opcode, by opcode. */
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
	bool has_wide_operand;  /* REX.W */
	bool has_short_operand; /* 66 */
	bool has_repeat;        /* f2 or f3: another instruction in map 0f */
	bool is_vector;         /* VEX or EVEX */
	uint8_t rex;
	uint8_t map; /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
};

static void read_prefixes(struct cursor *cursor)
{
	static const bool is_prefix[256] = {
		[0x26] = true, [0x2e] = true, [0x36] = true, [0x3e] = true, [0x64] = true, [0x65] = true,
		[0x66] = true, [0x67] = true, [0xf0] = true, [0xf2] = true, [0xf3] = true,
	};
	while (cursor->at < cursor->size && is_prefix[cursor->bytes[cursor->at]]) {
		uint8_t byte = cursor->bytes[cursor->at++];
		cursor->has_short_operand |= byte == 0x66;
		cursor->has_repeat |= byte == 0xf2 || byte == 0xf3;
	}
	if (cursor->at < cursor->size && (cursor->bytes[cursor->at] & 0xf0) == 0x40) {
		cursor->rex = cursor->bytes[cursor->at++];
		cursor->has_wide_operand = cursor->rex & 8;
	}
}

/* Leaves the cursor at the opcode. */
static bool read_map(struct cursor *cursor)
{
	static const uint8_t vector_prefixes[] = { [0xc5 & 7] = 1, [0xc4 & 7] = 2, [0x62 & 7] = 3 };
	if (cursor->at >= cursor->size)
		return false;
	uint8_t byte = cursor->bytes[cursor->at];
	if (byte == 0xc5 || byte == 0xc4 || byte == 0x62) {
		uint8_t payload = vector_prefixes[byte & 7];
		if (cursor->size - cursor->at < payload + 2u)
			return false;
		cursor->map = byte == 0xc5 ? 1 : cursor->bytes[cursor->at + 1] & 7;
		cursor->is_vector = true;
		cursor->at += 1u + payload;
		return cursor->map >= 1 && cursor->map <= 3;
	}
	if (byte != 0x0f)
		return true;
	cursor->map = 1;
	if (++cursor->at >= cursor->size)
		return false;
	if (cursor->bytes[cursor->at] == 0x38 || cursor->bytes[cursor->at] == 0x3a) {
		cursor->map = cursor->bytes[cursor->at] == 0x38 ? 2 : 3;
		cursor->at++;
	}
	return cursor->at < cursor->size;
}

static uint8_t form_of(const struct cursor *cursor, uint8_t opcode)
{
	switch (cursor->map) {
	case 0: return one_byte[opcode];
	case 1: return two_bytes[opcode];
	case 2: return M;
	default: return M | B;
	}
}

/* Bytes of the operand beyond ModRM; `*place` becomes the offset of a displacement
 * that is relative to the instruction pointer. False: cut off. */
static bool read_operand(struct cursor *cursor, uint8_t *place)
{
	if (cursor->at >= cursor->size)
		return false;
	uint8_t operand = cursor->bytes[cursor->at++];
	uint8_t mode = operand >> 6, base = operand & 7;
	if (mode == 3)
		return true;
	if (base == 4) {
		if (cursor->at >= cursor->size)
			return false;
		base = cursor->bytes[cursor->at++] & 7;
		if (mode == 0 && base == 5)
			cursor->at += 4;
	} else if (mode == 0 && base == 5) {
		*place = (uint8_t)cursor->at;
		cursor->at += 4;
	}
	if (mode == 1)
		cursor->at += 1;
	else if (mode == 2)
		cursor->at += 4;
	return true;
}

static void read_constants(struct cursor *cursor, uint8_t form, uint8_t opcode, uint8_t operand)
{
	size_t by_size = cursor->has_short_operand ? 2 : 4;
	if (form & B)
		cursor->at += 1;
	if (form & W)
		cursor->at += 2;
	if (form & Z)
		cursor->at += by_size;
	if (form & V)
		cursor->at += cursor->has_wide_operand ? 8 : by_size;
	/* "test" has a constant, the other operations of its opcode have none. */
	if (cursor->map == 0 && (opcode == 0xf6 || opcode == 0xf7) && ((operand >> 3) & 7) < 2)
		cursor->at += opcode == 0xf6 ? 1 : by_size;
}

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

/* Of up to 15 bytes: an instruction's, so this runs for every one there is. */
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

static void judge_branch(struct code_instruction *instruction, const struct cursor *cursor, uint8_t opcode)
{
	instruction->kind = CODE_BRANCH;
	if (cursor->map == 0 && opcode == 0xe8)
		instruction->hash = hash_same(SAME_CALL, 0);
	else if (cursor->map == 0 && (opcode == 0xe9 || opcode == 0xeb))
		instruction->hash = hash_same(SAME_JUMP, 0x100);
	else if (cursor->map == 1 || (opcode & 0xf0) == 0x70)
		instruction->hash = hash_same(SAME_JUMP, opcode & 15);
	else
		instruction->hash = hash_same(SAME_JUMP, 0x200u + opcode);
}

/* The operand at `operand` is relative to the instruction pointer. */
static void judge_memory(struct code_instruction *instruction, const struct cursor *cursor, uint8_t opcode,
                         uint8_t operand)
{
	uint8_t number = (operand >> 3) & 7;
	uint32_t target = number | (cursor->rex & 4 ? 8u : 0u);
	instruction->kind = CODE_MEMORY;
	if (cursor->map != 0 || cursor->is_vector)
		return;
	if (opcode == 0x8d && cursor->has_wide_operand) {
		instruction->hash = hash_same(SAME_ADDRESS, target);
	} else if (opcode == 0x8b && cursor->has_wide_operand) {
		instruction->kind = CODE_SLOT;
		instruction->slot_hash = hash_same(SAME_ADDRESS, target);
	} else if (opcode == 0xff && (number == 2 || number == 4)) {
		instruction->kind = CODE_SLOT;
		instruction->slot_hash = number == 2 ? hash_same(SAME_CALL, 0) : hash_same(SAME_JUMP, 0x100);
	}
}

static bool is_padding(const struct cursor *cursor, uint8_t opcode, uint8_t operand)
{
	if (cursor->is_vector)
		return false;
	if (cursor->map == 1 && opcode == 0x1f && ((operand >> 3) & 7) == 0)
		return true;
	return cursor->map == 0 && opcode == 0x90 && !cursor->has_repeat && !(cursor->rex & 1);
}

bool code_decode(const unsigned char *bytes, size_t size, struct code_instruction *instruction)
{
	struct cursor cursor = { .bytes = bytes, .size = size < 15 ? size : 15 };
	memset(instruction, 0, sizeof(*instruction));
	read_prefixes(&cursor);
	if (!read_map(&cursor))
		return false;
	uint8_t opcode = bytes[cursor.at++];
	uint8_t form = form_of(&cursor, opcode), operand = 0, place = 0;
	if (form == X)
		return false;
	if (form & M) {
		operand = cursor.at < cursor.size ? bytes[cursor.at] : 0;
		if (!read_operand(&cursor, &place))
			return false;
	}
	size_t constants = cursor.at;
	read_constants(&cursor, form, opcode, operand);
	if (form & (J | K)) {
		place = (uint8_t)cursor.at;
		cursor.at += form & J ? 1 : 4;
	}
	if (cursor.at > cursor.size)
		return false;
	instruction->length = (uint8_t)cursor.at;
	instruction->field = place;
	instruction->field_size = form & J ? 1 : 4;
	if (is_padding(&cursor, opcode, operand)) {
		instruction->kind = CODE_PADDING;
		return true;
	}
	/* An absolute address of code that is not position-independent. */
	if (!place && cursor.map == 0 && (form & V) && !cursor.has_wide_operand &&
	    !cursor.has_short_operand) {
		instruction->kind = CODE_ABSOLUTE;
		instruction->field = (uint8_t)constants;
		instruction->slot_hash = hash_same(SAME_ADDRESS, (opcode & 7u) | (cursor.rex & 1 ? 8u : 0u));
	}
	instruction->hash = hash_bytes(UINT32_C(0x811c9dc5), bytes, place ? place : cursor.at, size);
	if (!place)
		return true;
	size_t rest = (size_t)place + instruction->field_size;
	if (rest < cursor.at)
		instruction->hash =
			hash_bytes(instruction->hash, bytes + rest, cursor.at - rest, size - rest);
	if (form & (J | K))
		judge_branch(instruction, &cursor, opcode);
	else
		judge_memory(instruction, &cursor, opcode, operand);
	return true;
}
