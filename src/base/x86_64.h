/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes x86-64 instructions as far as names of code, stubs, unwinding and plans need it: the
 * length, the opcode, and the named address.
 *
 * Why not a library: Zydis needs three to five times as long (64-90 ns per instruction, while the
 * first name from an archive decodes half a million), and Debian has it only as a shared library,
 * which would become another dependency of every host. The test compares lengths and addresses with
 * objdump's for whole libraries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_BYTES_MAX 15 /* of one instruction */

/* Which table the opcode is of. */
enum x86_map {
	X86_ONE_BYTE,
	X86_0F,
	X86_0F38,
	X86_0F3A,
	X86_EVEX5 = 5, /* half-precision numbers */
	X86_EVEX6,
	X86_XOP8 = 8, /* AMD's of 2011 */
	X86_XOP9,
	X86_XOPA,
};

struct x86_instruction {
	uint8_t length;
	uint8_t map; /* enum x86_map */
	uint8_t opcode;
	uint8_t rex;        /* the prefix, 0: none */
	uint8_t operand;    /* the operand byte (ModRM), 0 if there is none */
	uint8_t operand_at; /* its offset, 0 if there is none */
	/* Offset of the displacement that names an address relative to the end of the instruction,
	 * 0: it names none; and its size, 1 or 4. */
	uint8_t field, field_size;
	uint8_t constants;   /* offset of what follows opcode and operand */
	bool is_branch;      /* the place is where it jumps or calls to */
	bool is_vector;      /* VEX, EVEX, XOP: opcodes have other meanings */
	bool has_repeat;     /* prefix f2 or f3: another instruction of map 0f */
	bool has_short;      /* prefix 66: 16-bit operands */
	bool has_wide_value; /* its constant has 16, 32 or 64 bits, by the prefixes */
};

/* False for bytes that are not an x86-64 instruction that compilers emit. */
bool x86_decode(const unsigned char *bytes, size_t size, struct x86_instruction *instruction);

/* The place that the instruction at `address` names. */
uint64_t x86_address(const struct x86_instruction *instruction, const unsigned char *bytes, uint64_t address);

/* Number of the register in the middle of the operand byte: a second operand, or part of the opcode. */
static inline unsigned x86_register(const struct x86_instruction *instruction)
{
	return ((instruction->operand >> 3) & 7u) | (instruction->rex & 4u ? 8u : 0u);
}
