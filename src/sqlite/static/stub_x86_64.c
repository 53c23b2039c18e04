/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64. The jump has five bytes and may displace several instructions. endbr64 remains, and the
 * jump follows it.
 */
#include <string.h>

#include "base/x86_64.h"
#include "sqlite/static/stub.h"

#define JUMP_BYTES 5
#define RSP 4
#define RBP 5

/* How far branches back into the displaced instructions are searched. */
#define BODY_BYTES ((uintptr_t)1 << 16)

const uintptr_t stub_reach = (uintptr_t)0x7ff00000;

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

/* --- what an instruction does ---------------------------------------------------------------- */

/* The effect of an instruction besides flags and memory that is not the stack's. */
enum effect {
	UNKNOWN = 0,
	NOTHING,     /* none of the registers, or one that cannot be named here */
	TO_REGISTER, /* the register in the operand byte's middle */
	TO_OPERAND,  /* the operand, a register or memory */
	PUSHES,
	POPS,     /* only the frame pointer that it has pushed */
	GROUP,    /* of constants: cmp, sub, and others by the middle of the operand byte */
	TEST,     /* or not, neg; others multiply and divide */
	BRANCHES, /* under a condition */
	JUMPS,
	CALLS,
	RETURNS,
};

static const uint8_t one_byte[256] = {
	[0x01] = TO_OPERAND,
	[0x03] = TO_REGISTER,
	[0x05] = NOTHING,
	[0x09] = TO_OPERAND,
	[0x0b] = TO_REGISTER,
	[0x0d] = NOTHING,
	[0x11] = TO_OPERAND,
	[0x13] = TO_REGISTER,
	[0x19] = TO_OPERAND,
	[0x1b] = TO_REGISTER,
	[0x21] = TO_OPERAND,
	[0x23] = TO_REGISTER,
	[0x25] = NOTHING,
	[0x29] = TO_OPERAND,
	[0x2b] = TO_REGISTER,
	[0x2d] = NOTHING,
	[0x31] = TO_OPERAND,
	[0x33] = TO_REGISTER,
	[0x35] = NOTHING,
	[0x38 ... 0x3d] = NOTHING,
	[0x50 ... 0x57] = PUSHES,
	[0x5d] = POPS,
	[0x63] = TO_REGISTER,
	[0x69] = TO_REGISTER,
	[0x6b] = TO_REGISTER,
	[0x70 ... 0x7f] = BRANCHES,
	[0x80] = GROUP,
	[0x81] = GROUP,
	[0x83] = GROUP,
	[0x84] = NOTHING,
	[0x85] = NOTHING,
	[0x88] = NOTHING,
	[0x89] = TO_OPERAND,
	[0x8b] = TO_REGISTER,
	[0x8d] = TO_REGISTER,
	[0x90] = NOTHING,
	[0x98] = NOTHING,
	[0x99] = NOTHING,
	[0xa8] = NOTHING,
	[0xa9] = NOTHING,
	[0xb8 ... 0xbf] = NOTHING,
	[0xc1] = TO_OPERAND,
	[0xc3] = RETURNS,
	[0xc6] = NOTHING,
	[0xc7] = TO_OPERAND,
	[0xd1] = TO_OPERAND,
	[0xe8] = CALLS,
	[0xe9] = JUMPS,
	[0xeb] = JUMPS,
	[0xf6] = TEST,
	[0xf7] = TEST,
};

static const uint8_t two_bytes[256] = {
	/* after 0f */
	[0x10 ... 0x13] = NOTHING,
	[0x16 ... 0x17] = NOTHING,
	[0x1f] = NOTHING,
	[0x28 ... 0x29] = NOTHING,
	[0x40 ... 0x4f] = TO_REGISTER,
	[0x57] = NOTHING,
	[0x6e ... 0x6f] = NOTHING,
	[0x7f] = NOTHING,
	[0x80 ... 0x8f] = BRANCHES,
	[0xaf] = TO_REGISTER,
	[0xb6 ... 0xb7] = TO_REGISTER,
	[0xbe ... 0xbf] = TO_REGISTER,
	[0xd6] = NOTHING,
	[0xef] = NOTHING,
};

static enum effect effect_of(const struct x86_instruction *instruction)
{
	enum effect effect;

	if (instruction->is_vector || instruction->map > X86_0F)
		return UNKNOWN;
	if (instruction->map == X86_0F)
		return two_bytes[instruction->opcode];
	effect = one_byte[instruction->opcode];
	/* With a prefix: pause, bnd, rep ret. */
	if (instruction->has_repeat || (instruction->has_short && effect >= BRANCHES))
		return UNKNOWN;
	/* The register of these is in the opcode: mov $n,%rsp is known to no compiler. */
	if ((instruction->opcode & 0xf8) == 0xb8 &&
	    ((instruction->opcode & 7) | (instruction->rex & 1) << 3) == RSP)
		return UNKNOWN;
	return effect;
}

/* The register operand; 16: it is in memory. */
static unsigned operand_register(const struct x86_instruction *instruction)
{
	if (instruction->operand >> 6 != 3)
		return 16;
	return (instruction->operand & 7u) | (instruction->rex & 1u ? 8u : 0u);
}

/* The register that the instruction writes; 16: none. */
static unsigned written(const struct x86_instruction *instruction, enum effect effect)
{
	unsigned operation = instruction->operand >> 3 & 7;

	switch (effect) {
	case TO_REGISTER: return x86_register(instruction);
	case TO_OPERAND: return operand_register(instruction);
	case GROUP: return operation == 7 ? 16 : operand_register(instruction);
	case TEST: return operation <= 1 ? 16 : operand_register(instruction);
	default: return 16;
	}
}

/* --- making one ------------------------------------------------------------------------------- */

struct making {
	struct stub *stub;
	const struct static_range *code;
	uintptr_t address; /* the future address of the stub's first byte */
	uint32_t cfa, fp;
	const char *refused;
};

static uintptr_t here(const struct making *making)
{
	return making->address + making->stub->size;
}

static void put(struct making *making, const void *bytes, size_t size)
{
	struct stub *stub = making->stub;

	if (size > sizeof(stub->code) - stub->size) {
		making->refused = "there is no space for its stub";
		return;
	}
	memcpy(stub->code + stub->size, bytes, size);
	stub->size += size;
}

static void put_32(struct making *making, uint32_t value)
{
	put(making, &value, sizeof(value));
}

/* The distance from after it to `target`. */
static void put_field(struct making *making, uintptr_t target)
{
	int64_t distance = (int64_t)(target - (here(making) + sizeof(int32_t)));

	if (distance != (int32_t)distance)
		making->refused = "what it names is too far away";
	put_32(making, (uint32_t)distance);
}

static void put_jump(struct making *making, uintptr_t target)
{
	put(making, "\xe9", 1);
	put_field(making, target);
}

static void add_row(struct making *making)
{
	struct stub *stub = making->stub;
	const struct stub_row *last = stub->rows_count ? &stub->rows[stub->rows_count - 1] : NULL;

	if (last && last->cfa == making->cfa && last->fp == making->fp)
		return;
	if (stub->rows_count == STUB_ROWS_MAX)
		making->refused = "there is no space for its stub";
	else
		stub->rows[stub->rows_count++] =
			(struct stub_row){ (uint16_t)stub->size, making->cfa, making->fp, false };
}

static bool has_shadow_stack(void)
{
	uint64_t pointer = 0;

	__asm__ volatile("rdsspq %0" : "+r"(pointer)); /* does nothing if there is none */
	return pointer != 0;
}

/* The original return address on the stack, and a jump. */
static void put_call(struct making *making, uintptr_t returns_to, uintptr_t target)
{
	if (has_shadow_stack())
		making->refused = "it begins with a call, which the shadow stack would miss";
	put(making, "\x68", 1); /* push $low, sign-extended */
	put_32(making, (uint32_t)returns_to);
	making->cfa += 8;
	add_row(making);
	put(making, "\xc7\x44\x24\x04", 4); /* movl $high,4(%rsp) */
	put_32(making, (uint32_t)(returns_to >> 32));
	put_jump(making, target);
	making->cfa -= 8;
	add_row(making);
}

static void put_copy(struct making *making, const struct x86_instruction *instruction, uintptr_t pc)
{
	const uint8_t *bytes = (const uint8_t *)pc;

	if (!instruction->field) {
		put(making, bytes, instruction->length);
		return;
	}
	/* It names a place, four bytes that constants may follow. */
	const uintptr_t target = (uintptr_t)x86_address(instruction, bytes, pc);
	const size_t behind = instruction->length - instruction->field - sizeof(int32_t);

	put(making, bytes, instruction->field);
	put_field(making, target - behind);
	put(making, bytes + instruction->length - behind, behind);
}

static uint32_t stack_constant(const struct x86_instruction *instruction, const uint8_t *bytes)
{
	int32_t value = (int8_t)bytes[instruction->constants];

	if (instruction->opcode == 0x81)
		memcpy(&value, bytes + instruction->constants, sizeof(value));
	return (uint32_t)value;
}

/* Follows an instruction's effect on the stack and on the frame pointer. */
static void follow_registers(struct making *making, const struct x86_instruction *instruction,
                             enum effect effect, const uint8_t *bytes)
{
	unsigned operation = instruction->operand >> 3 & 7, target = written(instruction, effect);

	if (effect == PUSHES) {
		making->cfa += 8;
		if (instruction->opcode == 0x50 + RBP && !(instruction->rex & 1) && !making->fp)
			making->fp = making->cfa;
		if (instruction->has_short)
			making->refused = "it pushes half a word";
	} else if (effect == POPS) {
		if ((instruction->rex & 1) || instruction->has_short || making->fp != making->cfa)
			making->refused = "it pops what it has not pushed";
		making->cfa -= 8;
		making->fp = 0;
	} else if (target == RSP && effect == GROUP && operation == 5 && (instruction->rex & 8) &&
	           instruction->opcode != 0x80 && stack_constant(instruction, bytes) < 1u << 20) {
		making->cfa += stack_constant(instruction, bytes);
	} else if (target == RSP) {
		making->refused = "it moves the stack pointer in an unknown way";
	} else if (target == RBP && !making->fp) {
		making->refused = "it changes the frame pointer before it has saved it";
	}
}

/* One instruction. False: it is the last that is ever executed there. */
static bool displace(struct making *making, const struct x86_instruction *instruction, uintptr_t pc)
{
	const uint8_t *bytes = (const uint8_t *)pc;
	enum effect effect = effect_of(instruction);
	uintptr_t target = instruction->is_branch ? (uintptr_t)x86_address(instruction, bytes, pc) : 0;

	switch (effect) {
	case UNKNOWN: making->refused = "it begins with an unknown instruction"; break;
	case BRANCHES:
		put(making, (uint8_t[]){ 0x0f, 0x80 | (instruction->opcode & 0x0f) }, 2);
		put_field(making, target);
		break;
	case JUMPS: put_jump(making, target); return false;
	case CALLS:
		if (pc + instruction->length < making->stub->at + JUMP_BYTES)
			making->refused = "a call would return into the replaced instructions";
		put_call(making, pc + instruction->length, target);
		break;
	case RETURNS: put(making, bytes, instruction->length); return false;
	default:
		put_copy(making, instruction, pc);
		follow_registers(making, instruction, effect, bytes);
		break;
	}
	add_row(making);
	return true;
}

static bool decode(const struct static_range *code, uintptr_t pc, struct x86_instruction *instruction)
{
	return static_is_in(code, pc) && x86_decode((const uint8_t *)pc, code->end - pc, instruction);
}

static bool is_padding(const struct x86_instruction *instruction, uint8_t first)
{
	return first == 0xcc || first == 0x90 ||
	       (instruction->map == X86_0F && instruction->opcode == 0x1f) ||
	       (instruction->map == X86_ONE_BYTE && instruction->opcode == 0x90);
}

/* After the end of a short function, only padding may be overwritten. */
static uintptr_t skip_padding(struct making *making, uintptr_t pc)
{
	struct x86_instruction instruction;

	while (pc < making->stub->at + JUMP_BYTES) {
		if (!decode(making->code, pc, &instruction) ||
		    !is_padding(&instruction, *(const uint8_t *)pc)) {
			making->refused = "it is too short for a jump";
			break;
		}
		pc += instruction.length;
	}
	return pc;
}

static void displace_all(struct making *making)
{
	struct stub *stub = making->stub;
	struct x86_instruction instruction;
	bool goes_on = true;

	for (stub->back = stub->at; goes_on && !making->refused && stub->back < stub->at + JUMP_BYTES;
	     stub->back += instruction.length) {
		if (!decode(making->code, stub->back, &instruction)) {
			making->refused = "it begins with an unknown instruction";
			return;
		}
		goes_on = displace(making, &instruction, stub->back);
	}
	if (goes_on)
		put_jump(making, stub->back);
	else
		stub->back = skip_padding(making, stub->back);
}

/* Whether a branch of the function leads into the displaced code. The function ends after the last
 * instruction that neither continues nor is passed by an earlier branch. */
static bool has_branch_back(struct stub *stub, const struct static_range *code)
{
	uintptr_t limit = stub->back + BODY_BYTES, farthest = 0;
	struct x86_instruction instruction;

	stub->end = stub->back;
	for (uintptr_t pc = stub->at; pc < limit && decode(code, pc, &instruction);
	     pc += instruction.length) {
		enum effect effect = effect_of(&instruction);
		bool is_jump = effect == JUMPS ||
		               (instruction.opcode == 0xff && (instruction.operand & 0x38) == 0x20);

		if (instruction.is_branch && effect != CALLS) {
			uintptr_t target = (uintptr_t)x86_address(&instruction, (const uint8_t *)pc, pc);

			if (target > stub->at && target < stub->back)
				return true;
			if (target > farthest && target < limit)
				farthest = target;
		}
		if (pc >= stub->back)
			stub->end = pc + instruction.length;
		if ((is_jump || effect == RETURNS) && pc >= farthest && pc >= stub->back)
			break;
	}
	return false;
}

const char *stub_make(struct stub *stub, const struct static_range *code, uintptr_t entry, uintptr_t address,
                      const void *wrapper)
{
	struct making making = { stub, code, address, 8, 0, NULL };
	int64_t distance;

	*stub = (struct stub){ .at = entry };
	if (!static_is_in(code, entry) || code->end - entry < 2 * X86_BYTES_MAX)
		return "it is at the end of the code";
	if (!memcmp((const void *)entry, endbr64, sizeof(endbr64)))
		stub->at += sizeof(endbr64);
	add_row(&making);
	put(&making, "\x4c\x8d\x1d", 3); /* lea n(%rip),%r11 */
	put_32(&making, 6 + sizeof(wrapper));
	put(&making, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	put(&making, &wrapper, sizeof(wrapper));
	stub->second = stub->size;
	put(&making, endbr64, sizeof(endbr64)); /* it is called through a pointer */
	displace_all(&making);
	if (making.refused)
		return making.refused;
	if (has_branch_back(stub, code))
		return "a branch leads into the instructions that the jump would replace";
	distance = (int64_t)(address - (stub->at + JUMP_BYTES));
	if (distance != (int32_t)distance)
		return "its stub is too far away";
	stub->jump[0] = 0xe9;
	memcpy(stub->jump + 1, &(int32_t){ (int32_t)distance }, sizeof(int32_t));
	stub->jump_size = JUMP_BYTES;
	return NULL;
}

uintptr_t stub_jump_target(uintptr_t function)
{
	int32_t distance;

	if (!memcmp((const void *)function, endbr64, sizeof(endbr64)))
		function += sizeof(endbr64);
	if (*(const uint8_t *)function != 0xe9)
		return 0;
	memcpy(&distance, (const void *)(function + 1), sizeof(distance));
	return function + JUMP_BYTES + (uintptr_t)(intptr_t)distance;
}

/* --- thin functions ----------------------------------------------------------------------------- */

#define THIN_INSTRUCTIONS 14

static bool has_bytes(uintptr_t start, uintptr_t end, const char *bytes, size_t size)
{
	return memmem((const void *)start, end - start, bytes, size) != NULL;
}

/* sqlite3LockAndPrepare(db, sql, bytes, 0x80, NULL, stmt, tail), as sqlite3_prepare_v2() has its
 * own arguments in registers: mov %rcx,%r9; xor %r8d,%r8d; mov $0x80,%ecx (1 before 3.20); %r8 onto
 * the stack. */
static bool is_called_for_preparing(uintptr_t start, uintptr_t end)
{
	return has_bytes(start, end, "\x49\x89\xc9", 3) && has_bytes(start, end, "\x45\x31\xc0", 3) &&
	       (has_bytes(start, end, "\xb9\x80\0\0\0", 5) || has_bytes(start, end, "\xb9\1\0\0\0", 5)) &&
	       (has_bytes(start, end, "\x4c\x89\x04\x24", 4) || has_bytes(start, end, "\x41\x50", 2));
}

uintptr_t stub_only_call(const struct static_range *code, uintptr_t entry, bool is_prepare)
{
	struct x86_instruction instruction;
	uintptr_t pc = entry, target;

	for (int i = 0; i < THIN_INSTRUCTIONS && decode(code, pc, &instruction);
	     i++, pc += instruction.length) {
		enum effect effect = effect_of(&instruction);

		if (effect == BRANCHES || effect == RETURNS)
			return 0;
		if (effect != CALLS && effect != JUMPS)
			continue;
		target = (uintptr_t)x86_address(&instruction, (const uint8_t *)pc, pc);
		if (is_prepare && !is_called_for_preparing(entry, pc))
			return 0;
		/* A jump to a jump. */
		if (decode(code, target, &instruction) && effect_of(&instruction) == JUMPS)
			target = (uintptr_t)x86_address(&instruction, (const uint8_t *)target, target);
		return static_is_in(code, target) ? target : 0;
	}
	return 0;
}
