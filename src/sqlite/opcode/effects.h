/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of an x86-64 instruction on general registers and on the slots of its frame, as far as
 * flow.c needs it. Too much may be taken for written, never too little.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/x86_64.h"

/* A location below STEP_REGISTERS is a register by its number in instructions, the others are
 * slots: the first is at the CFA, each next one a word below. */
#define STEP_REGISTERS 16
#define STEP_STACK_POINTER 4
#define STEP_CHANGED_BY_CALLS 0x0fc7 /* the registers that a call need not keep */
#define STEP_LOCATIONS 240
#define STEP_NO_LOCATION 255

enum step_flow { FLOW_NEXT = 1, FLOW_TARGET = 2, FLOW_TABLE = 4 };

struct step {
	uint32_t at;           /* in the code */
	uint32_t target;       /* a step to which it may jump */
	uint8_t flow;          /* enum step_flow */
	bool forgets;          /* it may write to anything */
	bool fills;            /* it does nothing, like padding before loops */
	uint16_t kills;        /* the registers that it writes */
	uint8_t slot, slots;   /* and the slots, from one on */
	uint8_t from, to;      /* it copies a word from one location to the other */
	uint8_t names_table;   /* the width of an entry of the table that it may name, 0: none */
	uint8_t indexed;       /* the register that has the address of the table that it reads an entry of */
	uint8_t reads_byte_at; /* the register that has the address of a byte that it reads */
	/* The opcode is read there, and these have its address. */
	uint8_t inspected, inspected_too;
	uint8_t approaches; /* the register that the opcode will be looked at through */
};

/* The CFA is so far above the register. */
struct step_frame {
	unsigned base;
	int32_t offset;
};

void step_read(struct step *step, const struct x86_instruction *instruction, const unsigned char *bytes,
               const struct step_frame *frame);

/* The address of the table that the instruction names. */
uintptr_t step_table(const unsigned char *bytes);

/* Numbers of registers in DWARF are others. */
unsigned step_dwarf(unsigned number);
unsigned step_register(unsigned dwarf);
