/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings are those of the Arm Architecture Reference Manual (DDI 0487), chapter C4. */
#include "sqlite/opcode/effects.h"

#include <string.h>

#define WORD 8
#define ZERO 31 /* reads as 0; if it is the base of an address, it is the stack pointer */
#define LINK 30
#define WINDOW 24 /* instructions before a jump by a table */

/* Bits from `first`, so many. */
static uint32_t bits(uint32_t code, unsigned first, unsigned count)
{
	return code >> first & ((1u << count) - 1);
}

static int64_t signed_bits(uint32_t code, unsigned first, unsigned count)
{
	return (int64_t)((uint64_t)code << (64 - first - count)) >> (64 - count);
}

/* The register of a value: writes to the zero register have no effect. */
static uint32_t value(unsigned number)
{
	return number == ZERO ? 0 : 1u << number;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* An access to memory. */
struct access {
	unsigned base;
	int64_t distance;
	unsigned first, second; /* the registers whose words are there */
	uint32_t unit, bytes;   /* of a register, of all */
	bool is_load, is_vector, is_plain /* a base and a distance */;
};

/* How far the accessed memory is below the CFA. False: it is elsewhere. */
static bool find_below(const struct access *access, const struct step_frame *frame, int64_t *below)
{
	if (!access->is_plain ||
	    (access->base != frame->base && (access->base != STEP_STACK_POINTER || frame->above_stack == 0)))
		return false;
	*below = (access->base == frame->base ? frame->offset : frame->above_stack) - access->distance;
	return true;
}

static void copy_word(struct step *step, int number, const struct access *access, unsigned value_register,
                      int64_t below)
{
	const uint8_t slot = step_slot(below), named = (uint8_t)value_register;

	if (access->is_vector || access->unit != WORD || value_register == ZERO || slot == STEP_NO_LOCATION)
		return;
	step->copies[number] =
		access->is_load ? (struct step_copy){ slot, named } : (struct step_copy){ named, slot };
}

static void apply_access(struct step *step, const struct access *access, const struct step_frame *frame)
{
	int64_t below;

	if (access->is_load && !access->is_vector)
		step->kills |= value(access->first) | value(access->second);
	if (!find_below(access, frame, &below))
		return;
	if (!access->is_load)
		step_write_slots(step, below, access->bytes);
	copy_word(step, 0, access, access->first, below);
	if (access->bytes == 2 * WORD)
		copy_word(step, 1, access, access->second, below - WORD);
}

static void read_pair(struct step *step, uint32_t code, const struct step_frame *frame)
{
	const uint32_t size = bits(code, 30, 2), mode = bits(code, 23, 2);
	struct access access = { .base = bits(code, 5, 5),
		                 .first = bits(code, 0, 5),
		                 .second = bits(code, 10, 5),
		                 .is_load = bits(code, 22, 1),
		                 .is_vector = bits(code, 26, 1),
		                 .is_plain = true };

	if (size == 1 && !access.is_load && !access.is_vector) {
		step->forgets = true; /* with a tag of memory */
		step->kills |= 1u << access.base;
		return;
	}
	access.unit = access.is_vector ? 4u << size : size & 2 ? WORD : 4;
	access.bytes = 2 * access.unit;
	/* After the access: the base is added to. */
	access.distance = mode == 1 ? 0 : signed_bits(code, 15, 7) * access.unit;
	if (mode == 1 || mode == 3)
		step->kills |= 1u << access.base;
	apply_access(step, &access, frame);
}

/* Exclusive and ordered accesses, of one register or two. */
static void read_exclusive(struct step *step, uint32_t code, const struct step_frame *frame)
{
	struct access access = { .base = bits(code, 5, 5), .bytes = 2 * WORD, .is_plain = true };

	step->kills |= value(bits(code, 0, 5)) | value(bits(code, 10, 5)) | value(bits(code, 16, 5)) |
	               value((bits(code, 16, 5) + 1) & 31); /* a pair (casp) */
	access.first = access.second = ZERO;
	apply_access(step, &access, frame);
}

/* Of one register. */
static void read_single(struct step *step, uint32_t code, const struct step_frame *frame)
{
	const uint32_t size = bits(code, 30, 2), kind = bits(code, 22, 2), mode = bits(code, 10, 2);
	const bool is_scaled = bits(code, 24, 1), is_other = !is_scaled && bits(code, 21, 1);
	struct access access = { .base = bits(code, 5, 5),
		                 .first = bits(code, 0, 5),
		                 .second = ZERO,
		                 .is_vector = bits(code, 26, 1),
		                 .is_plain = !is_other };

	access.is_load = access.is_vector ? kind & 1 : kind != 0;
	access.unit = access.bytes = access.is_vector && kind & 2 ? 16 : 1u << size;
	if (is_other && mode != 2) {
		read_exclusive(step, code, frame); /* atomic, and loads with authentication */
		step->kills |= 1u << access.base;
		return;
	}
	if (!access.is_vector && size == 3 && kind == 2)
		return; /* a prefetch */
	if (is_scaled)
		access.distance = (int64_t)bits(code, 10, 12) * access.unit;
	else if (mode != 1)
		access.distance = signed_bits(code, 12, 9);
	if (!is_scaled && !is_other && (mode == 1 || mode == 3))
		step->kills |= 1u << access.base;
	if (is_other && access.is_load && !access.is_vector && size < 3)
		step->indexed = (uint8_t)access.base;
	/* In mode 3 the base is added to before the access, in mode 1 after it. */
	if (size == 0 && kind == 1 && !access.is_vector && access.is_plain &&
	    (is_scaled ? access.distance == 0 : mode == 3 || (mode == 0 && access.distance == 0)))
		step->reads_byte_at = (uint8_t)access.base;
	apply_access(step, &access, frame);
}

/* Of structures of vectors. */
static void read_structures(struct step *step, uint32_t code, const struct step_frame *frame)
{
	struct access access = { .base = bits(code, 5, 5),
		                 .first = ZERO,
		                 .second = ZERO,
		                 .bytes = 64,
		                 .is_load = bits(code, 22, 1),
		                 .is_vector = true,
		                 .is_plain = true };

	if (bits(code, 23, 1))
		step->kills |= 1u << access.base;
	apply_access(step, &access, frame);
}

static void read_memory(struct step *step, uint32_t code, const struct step_frame *frame)
{
	switch (bits(code, 28, 2)) {
	case 0:
		if (bits(code, 26, 1))
			read_structures(step, code, frame);
		else
			read_exclusive(step, code, frame);
		break;
	case 1:
		if (bits(code, 24, 1)) {
			step->forgets =
				true; /* tags of memory, ordered accesses with a distance, and new ones */
			step->kills |= 1u << bits(code, 5, 5);
		} else if (!bits(code, 26, 1))
			step->kills |= value(bits(code, 0, 5)); /* from a constant near the code */
		break;
	case 2: read_pair(step, code, frame); break;
	case 3: read_single(step, code, frame); break;
	}
}

/* --- values ----------------------------------------------------------------------------------- */

static void read_immediate(struct step *step, uint32_t code)
{
	const unsigned to = bits(code, 0, 5);
	const uint32_t kind = bits(code, 23, 3);
	const bool sets_flags = bits(code, 29, 1), is_sum = kind == 2 || kind == 3, is_logical = kind == 4;

	/* The stack pointer, if no flags are set. */
	if ((is_sum && !sets_flags) || (is_logical && bits(code, 29, 2) != 3))
		step->kills = 1u << to;
	else
		step->kills = value(to);
	if (kind == 2 && to == STEP_STACK_POINTER && bits(code, 5, 5) == to && bits(code, 29, 3) == 6)
		step->lowers = bits(code, 10, 12) << (bits(code, 22, 1) ? 12 : 0);
	/* The second half of an address: adrp, add. */
	if (kind == 2 && bits(code, 29, 3) == 4 && !bits(code, 22, 1) && to != STEP_STACK_POINTER)
		step->names_table = NAMES_ADDRESS;
}

static void read_registers(struct step *step, uint32_t code)
{
	const unsigned to = bits(code, 0, 5);

	if (bits(code, 21, 8) == 0xd2)
		return; /* ccmp, ccmn */
	if (bits(code, 24, 5) == 0x0b && bits(code, 21, 1) && !bits(code, 29, 1))
		step->kills = 1u << to; /* the stack pointer plus a register */
	else
		step->kills = value(to);
	/* orr to, xzr, from */
	if ((code & 0xffe0ffe0) == 0xaa0003e0 && to != ZERO && bits(code, 16, 5) != ZERO)
		step->copies[0] = (struct step_copy){ (uint8_t)bits(code, 16, 5), (uint8_t)to };
}

/* Few instructions for vectors and floating point write a general register. */
static void read_vector(struct step *step, uint32_t code)
{
	const bool is_conversion = (code & 0x5f20fc00) == 0x1e200000 || (code & 0x5f200000) == 0x1e000000;
	const bool is_element = (code & 0xbfe0ec00) == 0x0e002c00;

	if (is_conversion || is_element)
		step->kills = value(bits(code, 0, 5));
}

static void read_branch(struct step *step, uint32_t code, uintptr_t at, uintptr_t *to)
{
	const uint32_t kind = bits(code, 25, 7);

	if (bits(code, 26, 5) == 0x05) { /* b, bl */
		*to = at + (uintptr_t)(signed_bits(code, 0, 26) * 4);
		step->calls = bits(code, 31, 1);
		step->flow = step->calls ? FLOW_NEXT : FLOW_TARGET;
		step->kills = step->calls ? STEP_CHANGED_BY_CALLS : 0;
	} else if ((kind & 0x3e) == 0x1a || kind == 0x2a) { /* cbz, tbz; a condition */
		*to = at + (uintptr_t)((kind & 0x3f) == 0x1b ? signed_bits(code, 5, 14) * 4
		                                             : signed_bits(code, 5, 19) * 4);
		step->flow = FLOW_NEXT | FLOW_TARGET;
	} else if (kind == 0x6b) { /* to a register */
		if ((code & 0x00600000) == 0x00200000)
			step->kills = STEP_CHANGED_BY_CALLS;
		else
			step->flow = (code & 0x00600000) == 0 ? FLOW_TABLE : 0;
	} else if (bits(code, 24, 8) == 0xd4) {
		step->forgets = true;
		step->flow = bits(code, 21, 3) == 0 ? FLOW_NEXT : 0; /* a system call; brk */
	} else if (code == 0xd503201f)
		step->fills = true;
	else if ((code & 0xfffff000) == 0xd5032000 || (code & 0xfffff000) == 0xd5033000)
		step->kills = 1u << LINK | 3u << 16; /* hints, of which some sign or write these; barriers */
	else if ((code & 0xfff00000) == 0xd5300000)
		step->kills = value(bits(code, 0, 5)); /* mrs */
	else if ((code & 0xfff00000) != 0xd5100000)
		step->forgets = true;
}

bool step_read(struct step *step, uintptr_t at, uintptr_t end, const struct step_frame *frame, uintptr_t *to)
{
	uint32_t code;

	*step = step_empty();
	if (end - at < sizeof(code))
		return false;
	memcpy(&code, (const void *)at, sizeof(code));
	step->length = sizeof(code);
	switch (bits(code, 25, 4)) {
	case 0: /* no instruction */
		step->flow = 0;
		step->fills = code == 0;
		break;
	case 8:
	case 9: read_immediate(step, code); break;
	case 10:
	case 11: read_branch(step, code, at, to); break;
	case 4:
	case 6:
	case 12:
	case 14: read_memory(step, code, frame); break;
	case 5:
	case 13: read_registers(step, code); break;
	case 7:
	case 15: read_vector(step, code); break;
	default: step->forgets = true;
	}
	return true;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* The page or address that adrp or adr names. */
static uintptr_t named(uint32_t code, uintptr_t at)
{
	const int64_t distance = signed_bits(code, 5, 19) * 4 + bits(code, 29, 2);

	return bits(code, 31, 1) ? (at & ~(uintptr_t)0xfff) + (uintptr_t)(distance * 4096)
	                         : at + (uintptr_t)distance;
}

static bool is_named(uint32_t code, unsigned to)
{
	return (code & 0x1f000000) == 0x10000000 && bits(code, 0, 5) == to;
}

static uint32_t before(const unsigned char *at, size_t instructions)
{
	uint32_t code;

	memcpy(&code, at - 4 * instructions, sizeof(code));
	return code;
}

static size_t window_of(const struct step_place *place)
{
	return place->before / 4 < WINDOW ? place->before / 4 : WINDOW;
}

/* adrp page; add address, page, low */
static uintptr_t address_of(const struct step_place *naming)
{
	const uint32_t add = before(naming->bytes, 0);
	const size_t window = window_of(naming);

	for (size_t i = 1; i <= window; i++) {
		const uint32_t code = before(naming->bytes, i);

		if (is_named(code, bits(add, 5, 5)))
			return bits(code, 31, 1)
			               ? named(code, (uintptr_t)naming->bytes - 4 * i) + bits(add, 10, 12)
			               : 0;
	}
	return 0;
}

/* How the jump reads it; others may be between these, or these in another order:
 *
 *	cmp index, MOST
 *	b.hi default
 *	ldrh entry, [table, index]
 *	adr base
 *	add to, base, entry, sxth 2
 *	br to
 */
bool step_find_table(struct step_table *table, const struct step_place *naming,
                     const struct step_place *place)
{
	const unsigned char *jump = place->bytes;
	const size_t window = window_of(place);
	unsigned to = bits(before(jump, 0), 5, 5), base = ZERO, entry = ZERO;
	bool has_bound = false;

	*table = (struct step_table){ .most = UINT32_MAX };
	for (size_t i = 1; i <= window; i++) {
		const uint32_t code = before(jump, i);

		if (base == ZERO) {
			/* add, of an extended or shifted register */
			if (bits(code, 0, 5) != to || bits(code, 24, 8) != 0x8b)
				continue;
			base = bits(code, 5, 5);
			entry = bits(code, 16, 5);
			table->is_signed = bits(code, 21, 1) && bits(code, 15, 1);
			table->shift = (uint8_t)(bits(code, 21, 1) ? bits(code, 10, 3) : bits(code, 10, 6));
		} else if (!table->base && is_named(code, base) && !bits(code, 31, 1))
			table->base = named(code, (uintptr_t)jump - 4 * i);
		else if (!table->width && bits(code, 0, 5) == entry && (code & 0x3f200c00) == 0x38200800) {
			table->width = (uint8_t)(1u << bits(code, 30, 2));
			table->is_signed |= bits(code, 23, 1);
		} else if (table->width && (code & 0xff00001f) == 0x54000008)
			has_bound = true;                                  /* b.hi */
		else if (has_bound && (code & 0x7fc0001f) == 0x7100001f) { /* cmp, of 32 or 64 bits */
			table->most = bits(code, 10, 12) + 1;
			break;
		}
	}
	table->at = address_of(naming);
	return table->at && table->base && table->width && table->width < WORD && table->shift < 3;
}

/* --- numbers ---------------------------------------------------------------------------------- */

unsigned step_dwarf(unsigned number)
{
	return number;
}

unsigned step_register(unsigned dwarf)
{
	return dwarf;
}
