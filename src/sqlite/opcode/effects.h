/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of an instruction on general registers and on the slots of its frame, as far as flow.c needs
 * it. Too much may be taken for written, never too little. Each processor has a file of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A location below STEP_REGISTERS is a register by its number in instructions, the others are
 * slots: the first is at the CFA, each next one a word below. */
#if defined(__x86_64__)
#define STEP_REGISTERS 16
#define STEP_STACK_POINTER 4
#define STEP_CHANGED_BY_CALLS 0x0fc7u /* the registers that a call need not keep */
#elif defined(__aarch64__)
#define STEP_REGISTERS 32
#define STEP_STACK_POINTER 31
#define STEP_CHANGED_BY_CALLS 0x4007ffffu
#endif
#define STEP_LOCATIONS 240
#define STEP_NO_LOCATION 255

enum step_flow { FLOW_NEXT = 1, FLOW_TARGET = 2, FLOW_TABLE = 4 };

/* Its address is written to a register, or an entry of it is read at once. */
enum step_naming { NAMES_NOTHING, NAMES_ADDRESS, NAMES_ENTRY };

/* A word that is copied from one location to another. */
struct step_copy {
	uint8_t from, to;
};

struct step {
	uint32_t at;         /* in the code */
	uint32_t target;     /* a step to which it may jump */
	uint32_t kills;      /* the registers that it writes */
	uint32_t lowers;     /* the stack pointer by so much; where that matters, see struct step_frame */
	uint8_t length;      /* bytes */
	uint8_t flow;        /* enum step_flow */
	bool calls;          /* a function that is known */
	bool forgets;        /* it may write to anything */
	bool fills;          /* it does nothing, like padding before loops */
	uint8_t names_table; /* enum step_naming, of a table of jumps perhaps */
	uint8_t slot, slots; /* the slots that it writes, from one on */
	struct step_copy copies[2]; /* at once */
	uint8_t indexed;       /* the register that has the address of the table that it reads an entry of */
	uint8_t reads_byte_at; /* the register that has the address of a byte that it reads */
	/* The opcode is read there, and these have its address. */
	uint8_t inspected, inspected_too;
	uint8_t approaches; /* the register that the opcode will be looked at through */
};

/* The CFA is so far above the register, and above the stack pointer if that is known (not 0). On aarch64 code
 * whose CFA is counted from x29 uses both for its slots. */
struct step_frame {
	unsigned base;
	int32_t offset, above_stack;
};

/* A table of jumps. Each entry is a distance from `base`, in units of 1 << shift. */
struct step_table {
	uintptr_t at, base;
	uint8_t width, shift; /* bytes of an entry */
	bool is_signed;
	uint32_t most; /* entries */
};

/* Decodes the instruction at an address. False: it is none that compilers emit. `to`: where it jumps to
 * (FLOW_TARGET), or what it calls. */
bool step_read(struct step *step, uintptr_t at, uintptr_t end, const struct step_frame *frame, uintptr_t *to);

/* An instruction, and how many bytes of code are before it. */
struct step_place {
	const unsigned char *bytes;
	size_t before;
};

/* The table that one instruction names, as the jump reads it. */
bool step_find_table(struct step_table *table, const struct step_place *naming,
                     const struct step_place *jump);

/* Numbers of registers in DWARF may be others. */
unsigned step_dwarf(unsigned number);
unsigned step_register(unsigned dwarf);

/* The step writes so many bytes, of which the first is so far below the CFA. */
void step_write_slots(struct step *step, int64_t below, int64_t bytes);

/* The slot of a whole word that is so far below the CFA, STEP_NO_LOCATION: it is not a followed one. */
uint8_t step_slot(int64_t below);

/* Without any effect. */
static inline struct step step_empty(void)
{
	return (struct step){ .flow = FLOW_NEXT,
		              .copies = { { STEP_NO_LOCATION, STEP_NO_LOCATION },
		                          { STEP_NO_LOCATION, STEP_NO_LOCATION } },
		              .indexed = STEP_NO_LOCATION,
		              .reads_byte_at = STEP_NO_LOCATION,
		              .inspected = STEP_NO_LOCATION,
		              .inspected_too = STEP_NO_LOCATION,
		              .approaches = STEP_NO_LOCATION };
}
