/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One instruction, as it is compared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_kind {
	CODE_PLAIN,
	CODE_PADDING,  /* does nothing: compilers align with it */
	CODE_BRANCH,   /* jump or call; `field` is its displacement */
	CODE_MEMORY,   /* names a location relative to the instruction pointer */
	CODE_SLOT,     /* as CODE_MEMORY, and could read an address from the offset table */
	CODE_ABSOLUTE, /* loads a 32-bit constant that a relocation may fill */
};

struct code_instruction {
	uint8_t length;
	uint8_t kind;
	uint8_t field;      /* offset of the displacement that names the location */
	uint8_t field_size; /* 1 or 4 */
	uint32_t hash;      /* of all but the displacement */
	uint32_t slot_hash; /* the same operation without the detour through the table */
};

/* False for bytes that are no known x86-64 instruction. */
bool code_decode(const unsigned char *bytes, size_t size, struct code_instruction *instruction);
