/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64. The jump is one instruction, and displaces one. It follows the landing pad of code that is
 * guarded that way: `bti c`, or `paciasp`, which also signs the return address. The wrapper is called with
 * an address that is not signed, and the second part signs it anew.
 */
#include <string.h>

#include "sqlite/static/stub.h"

#define REACH ((int64_t)1 << 27) /* of b and bl */

#define BTI_C 0xd503245fu
#define PACIASP 0xd503233fu
#define AUTIASP 0xd50323bfu
#define BRANCH 0x14000000u

const uintptr_t stub_reach = (uintptr_t)REACH - 4096;

struct making {
	struct stub *stub;
	uintptr_t address; /* the future address of the stub's first byte */
	uint32_t cfa;
	bool is_signed; /* the return address in its register */
	const char *refused;
};

static uint32_t read_code(uintptr_t at)
{
	uint32_t code;

	memcpy(&code, (const void *)at, sizeof(code));
	return code;
}

static void put(struct making *making, uint32_t code)
{
	memcpy(making->stub->code + making->stub->size, &code, sizeof(code));
	making->stub->size += sizeof(code);
}

static void put_address(struct making *making, uintptr_t address)
{
	put(making, (uint32_t)address);
	put(making, (uint32_t)((uint64_t)address >> 32));
}

static void put_branch(struct making *making, uintptr_t target)
{
	int64_t distance = (int64_t)(target - (making->address + making->stub->size));

	if (distance >= REACH || distance < -REACH)
		making->refused = "what it names is too far away";
	put(making, BRANCH | ((uint32_t)(distance >> 2) & 0x3ffffff));
}

static void add_row(struct making *making)
{
	struct stub *stub = making->stub;

	stub->rows[stub->rows_count++] =
		(struct stub_row){ (uint16_t)stub->size, making->cfa, 0, making->is_signed };
}

/* A signed number of `bits` bits from bit `first` on. */
static int64_t field(uint32_t code, unsigned first, unsigned bits)
{
	return (int64_t)((uint64_t)code << (64 - first - bits)) >> (64 - bits);
}

/* Instructions that would change the stack pointer. The registers of the frame and of the return address are
 * saved by it at most, and still have their values. */
static bool follow_stack(struct making *making, uint32_t code)
{
	/* stp a,b,[sp,#-n]! of 64-bit registers, whole or vector. */
	if (((code & 0xffc003e0u) == 0xa98003e0u || (code & 0xffc003e0u) == 0x6d8003e0u) &&
	    field(code, 15, 7) < 0) {
		making->cfa += (uint32_t)(-8 * field(code, 15, 7));
		return true;
	}
	/* str a,[sp,#-n]! */
	if ((code & 0xffe00fe0u) == 0xf8000fe0u && field(code, 12, 9) < 0) {
		making->cfa += (uint32_t)-field(code, 12, 9);
		return true;
	}
	/* sub sp,sp,#n */
	if ((code & 0xff8003ffu) == 0xd10003ffu) {
		making->cfa += (code >> 10 & 0xfff) << (code & 0x400000u ? 12 : 0);
		return true;
	}
	return false;
}

/* Instructions that do the same at any address, and do not change the stack pointer, the frame
 * pointer and the link register: those with which functions of SQLite begin. */
static const struct {
	uint32_t mask, value;
	bool has_target; /* its lowest five bits are a register that it writes */
} plain[] = {
	{ 0x7fe0ffe0u, 0x2a0003e0u, true }, /* mov r,r */
	{ 0x1f800000u, 0x12800000u, true }, /* mov r,#n */
	{ 0x3fc00000u, 0x39400000u, true }, /* ldrb, ldrh, ldr: r,[r,#n] */
	{ 0xbfc00000u, 0xb9400000u, true },  { 0x3fc00000u, 0x39000000u, false }, /* strb, strh, str */
	{ 0xbfc00000u, 0xb9000000u, false }, { 0x7f00001fu, 0x7100001fu, false }, /* cmp r,#n */
	{ 0x7fe0001fu, 0x6b00001fu, false },                                      /* cmp r,r */
	{ 0x7f800000u, 0x11000000u, true },                                       /* add r,r,#n */
	{ 0x7f200000u, 0x0b000000u, true },                                       /* add r,r,r */
	{ 0x7fc00000u, 0x29400000u, true },  /* ldp, whose second register is also checked */
	{ 0xffffffffu, 0xd503201fu, false }, /* nop */
};

static bool is_kept(unsigned number)
{
	return number >= 29;
}

static bool is_plain(uint32_t code)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		if ((code & plain[i].mask) != plain[i].value)
			continue;
		if (plain[i].value == 0x29400000u && is_kept(code >> 10 & 31))
			return false;
		return !plain[i].has_target || !is_kept(code & 31);
	}
	return false;
}

/* A condition, followed by the branch that depends on it. */
static void put_condition(struct making *making, uint32_t code, uint32_t target_mask, uintptr_t target,
                          uintptr_t otherwise)
{
	put(making, (code & ~target_mask) | ((2u << 5) & target_mask)); /* over the next */
	put_branch(making, otherwise);
	put_branch(making, target);
}

/* An instruction that may sign the return address, or the opposite. */
static void put_sign(struct making *making, uint32_t code)
{
	put(making, code);
	making->is_signed = code == PACIASP;
	add_row(making);
}

static void displace(struct making *making, uint32_t code, uintptr_t pc)
{
	uintptr_t target;

	if (code == PACIASP) { /* after bti c */
		put_sign(making, code);
		put_branch(making, making->stub->back);
	} else if ((code & 0x9f000000u) == 0x90000000u || (code & 0x9f000000u) == 0x10000000u) {
		/* adrp, adr: the address next to it. */
		int64_t value = field(code, 5, 19) * 4 + (code >> 29 & 3);

		target = code >> 31 ? (pc & ~(uintptr_t)4095) + (uintptr_t)(value * 4096)
		                    : pc + (uintptr_t)value;
		if (is_kept(code & 31))
			making->refused = "it begins with an unknown instruction";
		put(making, 0x58000000u | 2u << 5 | (code & 31)); /* ldr x,8 */
		put_branch(making, making->stub->back);
		put_address(making, target);
	} else if ((code & 0xfc000000u) == BRANCH) {
		put_branch(making, pc + (uintptr_t)(field(code, 0, 26) * 4));
	} else if ((code & 0xff000010u) == 0x54000000u || (code & 0x7e000000u) == 0x34000000u) {
		/* b.cond, cbz, cbnz */
		put_condition(making, code, 0xffffe0u, pc + (uintptr_t)(field(code, 5, 19) * 4),
		              making->stub->back);
	} else if ((code & 0x7e000000u) == 0x36000000u) {
		/* tbz, tbnz */
		put_condition(making, code, 0x7ffe0u, pc + (uintptr_t)(field(code, 5, 14) * 4),
		              making->stub->back);
	} else if (follow_stack(making, code) || is_plain(code)) {
		put(making, code);
		add_row(making);
		put_branch(making, making->stub->back);
	} else {
		making->refused = "it begins with an unknown instruction";
	}
}

const char *stub_make(struct stub *stub, const struct static_range *code, uintptr_t entry, uintptr_t address,
                      const void *wrapper)
{
	struct making making = { .stub = stub, .address = address };
	uint32_t landing;
	int64_t distance;

	*stub = (struct stub){ .at = entry };
	if (!static_is_in(code, entry) || code->end - entry < 8)
		return "it is at the end of the code";
	landing = read_code(entry);
	if (landing == BTI_C || landing == PACIASP)
		stub->at += 4;
	stub->back = stub->end = stub->at + 4;
	making.is_signed = landing == PACIASP;
	add_row(&making);
	if (making.is_signed)
		put_sign(&making, AUTIASP);
	put(&making, 0x10000000u | 5u << 5 | 17); /* adr x17,second */
	put(&making, 0x58000000u | 2u << 5 | 16); /* ldr x16,8 */
	put(&making, 0xd61f0200u);                /* br x16 */
	put_address(&making, (uintptr_t)wrapper);
	stub->second = stub->size;
	put_sign(&making, landing == PACIASP ? PACIASP : BTI_C); /* it is called through a pointer */
	displace(&making, read_code(stub->at), stub->at);
	distance = (int64_t)(address - stub->at);
	if (!making.refused && (distance >= REACH || distance < -REACH))
		making.refused = "its stub is too far away";
	if (making.refused)
		return making.refused;
	memcpy(stub->jump, &(uint32_t){ BRANCH | ((uint32_t)(distance >> 2) & 0x3ffffff) }, 4);
	stub->jump_size = 4;
	return NULL;
}

uintptr_t stub_jump_target(uintptr_t function)
{
	uint32_t code = read_code(function);

	if (code == BTI_C || code == PACIASP)
		code = read_code(function += 4);
	return (code & 0xfc000000u) == BRANCH ? function + (uintptr_t)(field(code, 0, 26) * 4) : 0;
}

/* The convention of sqlite3LockAndPrepare() has not been read off any program here. */
uintptr_t stub_only_call(const struct static_range *code, uintptr_t entry, bool is_prepare)
{
	uintptr_t pc = entry;

	for (int i = 0; !is_prepare && i < 8 && static_is_in(code, pc); i++, pc += 4) {
		uint32_t instruction = read_code(pc);

		if ((instruction & 0x7c000000u) == BRANCH) { /* b, bl */
			pc += (uintptr_t)(field(instruction, 0, 26) * 4);
			return static_is_in(code, pc) ? pc : 0;
		}
		if ((instruction & 0xfe000000u) == 0x54000000u || instruction == 0xd65f03c0u)
			return 0;
	}
	return 0;
}
