/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/effects.h"

#include <string.h>

#include "base/x86_64.h"

#define WORD 8
#define A 0x0001u
#define AD 0x0005u   /* rax, rdx */
#define TEXT 0x00c3u /* of instructions on strings: rax, rcx, rsi, rdi */
#define SP (1u << STEP_STACK_POINTER)
#define VECTOR_BYTES 16 /* and what x87 stores */

/* The operands are R, the register, and M, the register or memory of the operand byte. */
enum effect {
	FORGETS, /* anything that is not here */
	NOTHING,
	FILLS,
	TO_R,
	TO_M,
	TO_BOTH,
	TO_A,
	TO_AD,
	TO_M_A,
	TO_NUMBERED, /* the register in the opcode's last bits */
	TO_NUMBERED_A,
	TO_TEXT,
	LOAD,
	STORE,
	STORE_VECTOR,
	LOAD_BYTE,
	ENTRY, /* a distance, as in tables */
	ADDRESS,
	ARITHMETIC, /* groups, by the operand byte's middle */
	MULTIPLY,
	GROUP_FF,
	BITS,
	PUSH,
	POP,
	POP_M,
	LEAVE,
	JUMP,
	CALLS,
	END,
};

/* In order. */
static const struct rule {
	uint8_t map, first, last, effect;
} rules[] = {
	{ X86_ONE_BYTE, 0x38, 0x3d, NOTHING }, /* cmp */
	{ X86_ONE_BYTE, 0x50, 0x57, PUSH },
	{ X86_ONE_BYTE, 0x58, 0x5f, POP },
	{ X86_ONE_BYTE, 0x63, 0x63, ENTRY }, /* movslq */
	{ X86_ONE_BYTE, 0x68, 0x68, PUSH },
	{ X86_ONE_BYTE, 0x69, 0x69, TO_R }, /* imul */
	{ X86_ONE_BYTE, 0x6a, 0x6a, PUSH },
	{ X86_ONE_BYTE, 0x6b, 0x6b, TO_R },
	{ X86_ONE_BYTE, 0x70, 0x7f, NOTHING },
	{ X86_ONE_BYTE, 0x80, 0x83, ARITHMETIC },
	{ X86_ONE_BYTE, 0x84, 0x85, NOTHING }, /* test */
	{ X86_ONE_BYTE, 0x86, 0x87, TO_BOTH },
	{ X86_ONE_BYTE, 0x88, 0x88, TO_M },
	{ X86_ONE_BYTE, 0x89, 0x89, STORE },
	{ X86_ONE_BYTE, 0x8a, 0x8a, LOAD_BYTE },
	{ X86_ONE_BYTE, 0x8b, 0x8b, LOAD },
	{ X86_ONE_BYTE, 0x8d, 0x8d, ADDRESS },
	{ X86_ONE_BYTE, 0x8f, 0x8f, POP_M },
	{ X86_ONE_BYTE, 0x90, 0x97, TO_NUMBERED_A }, /* xchg; nop is one */
	{ X86_ONE_BYTE, 0x98, 0x99, TO_AD },
	{ X86_ONE_BYTE, 0xa4, 0xa7, TO_TEXT },
	{ X86_ONE_BYTE, 0xa8, 0xa9, NOTHING },
	{ X86_ONE_BYTE, 0xaa, 0xaf, TO_TEXT },
	{ X86_ONE_BYTE, 0xb0, 0xbf, TO_NUMBERED },
	{ X86_ONE_BYTE, 0xc0, 0xc1, TO_M },
	{ X86_ONE_BYTE, 0xc2, 0xc3, END },
	{ X86_ONE_BYTE, 0xc6, 0xc7, TO_M },
	{ X86_ONE_BYTE, 0xc9, 0xc9, LEAVE },
	{ X86_ONE_BYTE, 0xcc, 0xcc, END },
	{ X86_ONE_BYTE, 0xd0, 0xd3, TO_M },
	{ X86_ONE_BYTE, 0xd8, 0xdf, TO_M }, /* x87 */
	{ X86_ONE_BYTE, 0xe8, 0xe8, CALLS },
	{ X86_ONE_BYTE, 0xe9, 0xe9, JUMP },
	{ X86_ONE_BYTE, 0xeb, 0xeb, JUMP },
	{ X86_ONE_BYTE, 0xf4, 0xf4, END },
	{ X86_ONE_BYTE, 0xf6, 0xf7, MULTIPLY },
	{ X86_ONE_BYTE, 0xfe, 0xfe, TO_M },
	{ X86_ONE_BYTE, 0xff, 0xff, GROUP_FF },
	{ X86_0F, 0x0b, 0x0b, END },
	{ X86_0F, 0x0d, 0x0d, NOTHING }, /* prefetch */
	{ X86_0F, 0x10, 0x10, NOTHING }, /* vectors, from memory or registers to them */
	{ X86_0F, 0x11, 0x11, STORE_VECTOR },
	{ X86_0F, 0x12, 0x12, NOTHING },
	{ X86_0F, 0x13, 0x13, STORE_VECTOR },
	{ X86_0F, 0x14, 0x16, NOTHING },
	{ X86_0F, 0x17, 0x17, STORE_VECTOR },
	{ X86_0F, 0x18, 0x1e, NOTHING },
	{ X86_0F, 0x1f, 0x1f, FILLS }, /* nop */
	{ X86_0F, 0x28, 0x28, NOTHING },
	{ X86_0F, 0x29, 0x29, STORE_VECTOR },
	{ X86_0F, 0x2a, 0x2a, NOTHING },
	{ X86_0F, 0x2b, 0x2b, STORE_VECTOR },
	{ X86_0F, 0x2c, 0x2d, TO_R },
	{ X86_0F, 0x2e, 0x2f, NOTHING },
	{ X86_0F, 0x40, 0x4f, TO_R }, /* cmov */
	{ X86_0F, 0x50, 0x50, TO_R },
	{ X86_0F, 0x51, 0x7d, NOTHING },
	{ X86_0F, 0x7e, 0x7e, TO_M },
	{ X86_0F, 0x7f, 0x7f, STORE_VECTOR },
	{ X86_0F, 0x80, 0x8f, NOTHING },
	{ X86_0F, 0x90, 0x9f, TO_M }, /* setcc */
	{ X86_0F, 0xa3, 0xa3, NOTHING },
	{ X86_0F, 0xa4, 0xa5, TO_M },
	{ X86_0F, 0xab, 0xad, TO_M },
	{ X86_0F, 0xae, 0xae, NOTHING }, /* fences */
	{ X86_0F, 0xaf, 0xaf, TO_R },
	{ X86_0F, 0xb0, 0xb1, TO_M_A },
	{ X86_0F, 0xb3, 0xb3, TO_M },
	{ X86_0F, 0xb6, 0xb6, LOAD_BYTE },
	{ X86_0F, 0xb7, 0xb8, TO_R },
	{ X86_0F, 0xba, 0xba, BITS },
	{ X86_0F, 0xbb, 0xbb, TO_M },
	{ X86_0F, 0xbc, 0xbf, TO_R },
	{ X86_0F, 0xc0, 0xc1, TO_BOTH },
	{ X86_0F, 0xc2, 0xc2, NOTHING },
	{ X86_0F, 0xc3, 0xc3, TO_M },
	{ X86_0F, 0xc4, 0xc4, NOTHING },
	{ X86_0F, 0xc5, 0xc5, TO_R },
	{ X86_0F, 0xc6, 0xc6, NOTHING },
	{ X86_0F, 0xc8, 0xcf, TO_NUMBERED },
	{ X86_0F, 0xd0, 0xd5, NOTHING },
	{ X86_0F, 0xd6, 0xd6, STORE_VECTOR },
	{ X86_0F, 0xd7, 0xd7, TO_R },
	{ X86_0F, 0xd8, 0xe6, NOTHING },
	{ X86_0F, 0xe7, 0xe7, STORE_VECTOR },
	{ X86_0F, 0xe8, 0xfe, NOTHING },
};

/* Arithmetic in the lower half of its map is the same eight times over. */
static enum effect effect_of(const struct x86_instruction *instruction)
{
	static const uint8_t arithmetic[8] = { TO_M, TO_M, TO_R, TO_R, TO_A, TO_A, FORGETS, FORGETS };

	if (instruction->is_vector)
		return FORGETS;
	for (size_t from = 0, to = sizeof(rules) / sizeof(*rules); from < to;) {
		const size_t middle = (from + to) / 2;
		const struct rule *rule = &rules[middle];

		if (instruction->map > rule->map ||
		    (instruction->map == rule->map && instruction->opcode > rule->last))
			from = middle + 1;
		else if (instruction->map < rule->map || instruction->opcode < rule->first)
			to = middle;
		else
			return rule->effect;
	}
	return instruction->map == X86_ONE_BYTE && instruction->opcode < 0x38
	               ? arithmetic[instruction->opcode & 7]
	               : FORGETS;
}

/* --- operands --------------------------------------------------------------------------------- */

/* The operand byte's register or memory. */
struct operand {
	bool is_memory, is_plain; /* plain: a register and a distance */
	unsigned base;            /* the register, or where the memory's address is */
	int32_t distance;
};

static struct operand operand_of(const struct x86_instruction *instruction, const unsigned char *bytes)
{
	const unsigned mode = instruction->operand >> 6, low = instruction->operand & 7u;
	const unsigned char *at = bytes + instruction->operand_at + 1;
	struct operand operand = { mode != 3, true, low | (instruction->rex & 1u ? 8u : 0u), 0 };

	if (mode == 3)
		return operand;
	if (low == 4) {
		const unsigned index = (*at >> 3 & 7u) | (instruction->rex & 2u ? 8u : 0u);

		operand.base = (*at & 7u) | (instruction->rex & 1u ? 8u : 0u);
		operand.is_plain = index == 4 && (mode != 0 || (*at & 7u) != 5);
		at++;
	} else if (mode == 0 && low == 5)
		operand.is_plain = false;
	if (mode == 1)
		operand.distance = (int8_t)*at;
	else if (mode == 2)
		memcpy(&operand.distance, at, sizeof(operand.distance));
	return operand;
}

/* The bytes of the frame as slots. */
static void write_slots(struct step *step, const struct operand *operand, const struct step_frame *frame,
                        int32_t bytes)
{
	if (operand->is_plain && operand->base == frame->base)
		step_write_slots(step, (int64_t)frame->offset - operand->distance, bytes);
}

static void write_operand(struct step *step, const struct operand *operand, const struct step_frame *frame,
                          int32_t bytes)
{
	if (operand->is_memory)
		write_slots(step, operand, frame, bytes);
	else
		step->kills |= (1u << operand->base);
}

/* The location of a whole word, STEP_NO_LOCATION: it is not a followed one. */
static uint8_t location_of(const struct operand *operand, const struct step_frame *frame)
{
	if (!operand->is_memory)
		return (uint8_t)operand->base;
	return operand->is_plain && operand->base == frame->base
	               ? step_slot((int64_t)frame->offset - operand->distance)
	               : STEP_NO_LOCATION;
}

static void copy(struct step *step, const struct x86_instruction *instruction, uint8_t from, uint8_t to)
{
	if (instruction->rex & 8 && from != STEP_NO_LOCATION && to != STEP_NO_LOCATION)
		step->copies[0] = (struct step_copy){ from, to };
}

/* How much an instruction for general registers writes. */
static int32_t bytes_of(const struct x86_instruction *instruction)
{
	const bool sets = instruction->map == X86_0F && (instruction->opcode & 0xf0) == 0x90;

	if (instruction->map == X86_ONE_BYTE && (instruction->opcode & 0xf8) == 0xd8)
		return VECTOR_BYTES;
	if (sets || (instruction->map == X86_ONE_BYTE && !(instruction->opcode & 1)))
		return 1;
	return instruction->rex & 8 || instruction->map != X86_ONE_BYTE ? WORD
	       : instruction->has_short                                 ? 2
	                                                                : 4;
}

/* jmp *table(, index, 8), or a mov before the jump. */
static bool names_addresses(const struct x86_instruction *instruction, const unsigned char *bytes)
{
	return instruction->operand >> 6 == 0 && (instruction->operand & 7) == 4 &&
	       (bytes[instruction->operand_at + 1] & 0xc7) == 0xc5;
}

static void read_group_ff(struct step *step, const struct x86_instruction *instruction,
                          const unsigned char *bytes, const struct operand *operand,
                          const struct step_frame *frame)
{
	switch (instruction->operand >> 3 & 7) {
	case 0:
	case 1: write_operand(step, operand, frame, bytes_of(instruction)); break;
	case 2: step->kills = STEP_CHANGED_BY_CALLS; break;
	case 4:
		step->flow = FLOW_TABLE;
		step->names_table = names_addresses(instruction, bytes) ? NAMES_ENTRY : NAMES_NOTHING;
		break;
	case 6: step->kills = SP; break;
	default: step->forgets = true;
	}
}

static void read_effect(struct step *step, const struct x86_instruction *instruction,
                        const unsigned char *bytes, const struct step_frame *frame)
{
	const struct operand operand = operand_of(instruction, bytes);
	const unsigned r = x86_register(instruction), middle = instruction->operand >> 3 & 7u;
	const int32_t written = bytes_of(instruction);
	const unsigned numbered = (instruction->opcode & 7u) | (instruction->rex & 1u ? 8u : 0u);
	const struct operand top = { true, true, frame->base,
		                     frame->base == STEP_STACK_POINTER ? -WORD : INT32_MIN / 2 };

	switch (effect_of(instruction)) {
	case NOTHING: break;
	case FILLS: step->fills = true; break;
	case LOAD_BYTE:
		if (operand.is_memory && operand.is_plain && operand.distance == 0)
			step->reads_byte_at = (uint8_t)operand.base;
		step->kills = (1u << r);
		break;
	case ENTRY:
		if (operand.is_memory && !operand.is_plain && !instruction->field)
			step->indexed = (uint8_t)operand.base;
		step->kills = (1u << r);
		break;
	case TO_R: step->kills = (1u << r); break;
	case TO_M: write_operand(step, &operand, frame, written); break;
	case TO_BOTH:
		write_operand(step, &operand, frame, written);
		step->kills |= (1u << r);
		break;
	case TO_A: step->kills = A; break;
	case TO_AD: step->kills = AD; break;
	case TO_M_A:
		write_operand(step, &operand, frame, written);
		step->kills |= A;
		break;
	case TO_NUMBERED: step->kills = (1u << numbered); break;
	case TO_NUMBERED_A:
		step->fills = numbered == 0;
		if (numbered != 0)
			step->kills = (1u << numbered) | A;
		break;
	case TO_TEXT: step->kills = TEXT; break;
	case LOAD:
		if (names_addresses(instruction, bytes))
			step->names_table = NAMES_ENTRY;
		step->kills = (1u << r);
		copy(step, instruction, location_of(&operand, frame), (uint8_t)r);
		break;
	case STORE:
		write_operand(step, &operand, frame, written);
		copy(step, instruction, (uint8_t)r, location_of(&operand, frame));
		break;
	case STORE_VECTOR:
		if (operand.is_memory)
			write_slots(step, &operand, frame, VECTOR_BYTES);
		break;
	case ADDRESS:
		if (instruction->field)
			step->names_table = NAMES_ADDRESS;
		step->kills = (1u << r);
		break;
	case ARITHMETIC:
		if (middle != 7)
			write_operand(step, &operand, frame, written);
		break;
	case MULTIPLY:
		if (middle >= 4)
			step->kills = AD;
		else if (middle >= 2)
			write_operand(step, &operand, frame, written);
		break;
	case GROUP_FF: read_group_ff(step, instruction, bytes, &operand, frame); break;
	case BITS:
		if (middle != 4)
			write_operand(step, &operand, frame, written);
		break;
	case PUSH:
		write_slots(step, &top, frame, WORD);
		step->kills = SP;
		break;
	case POP: step->kills = (1u << numbered) | SP; break;
	case POP_M:
		write_operand(step, &operand, frame, WORD);
		step->kills |= SP;
		break;
	case LEAVE: step->kills = SP | 1u << 5; break;
	case JUMP: step->flow = FLOW_TARGET; break;
	case CALLS:
		step->calls = true;
		step->kills = STEP_CHANGED_BY_CALLS;
		break;
	case END: step->flow = 0; break;
	case FORGETS: step->forgets = true;
	}
}

bool step_read(struct step *step, uintptr_t at, uintptr_t end, const struct step_frame *frame, uintptr_t *to)
{
	const unsigned char *bytes = (const unsigned char *)at;
	struct x86_instruction instruction;

	*step = step_empty();
	if (!x86_decode(bytes, end - at, &instruction))
		return false;
	step->length = instruction.length;
	if (instruction.is_branch) {
		step->flow = FLOW_NEXT | FLOW_TARGET;
		*to = x86_address(&instruction, bytes, at);
	}
	read_effect(step, &instruction, bytes, frame);
	if (step->calls)
		step->flow = FLOW_NEXT;
	return true;
}

/* Entries are distances from the table or addresses. */
bool step_find_table(struct step_table *table, const struct step_place *place, const struct step_place *jump)
{
	const unsigned char *naming = place->bytes;
	struct x86_instruction instruction;
	int32_t absolute;

	(void)jump;
	x86_decode(naming, X86_BYTES_MAX, &instruction);
	*table = (struct step_table){ .width = sizeof(int32_t), .is_signed = true, .most = UINT32_MAX };
	if (instruction.field) {
		table->at = table->base = x86_address(&instruction, naming, (uintptr_t)naming);
		return true;
	}
	memcpy(&absolute, naming + instruction.operand_at + 2, sizeof(absolute));
	table->at = (uintptr_t)(intptr_t)absolute;
	table->width = WORD;
	return true;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static const uint8_t dwarf_numbers[8] = { 0, 2, 1, 3, 7, 6, 4, 5 };

unsigned step_dwarf(unsigned number)
{
	return number < 8 ? dwarf_numbers[number] : number;
}

unsigned step_register(unsigned dwarf)
{
	for (unsigned i = 0; i < 8; i++)
		if (dwarf_numbers[i] == dwarf)
			return i;
	return dwarf;
}
