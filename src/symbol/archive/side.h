/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sides of code that were compiled from one source, in one form that can be compared:
 * functions as sequences of tokens and of the locations that they name.
 *
 * The object's side has the addresses of its file. The archive's side gets made-up
 * addresses, as if its members were linked one behind the other, so that on both sides a
 * location is one number. A symbol that neither side defines is a location too: a number made of
 * its name, the same on both sides.
 *
 * Everything in this folder belongs to one call of archive_collect().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

#define ARCHIVE_NONE UINT32_MAX

/* Made-up addresses: above all that an object has in its file. */
#define ARCHIVE_BASE (UINT64_C(1) << 48)
#define ARCHIVE_EXTERN (UINT64_C(1) << 63)

struct code_section {
	uint64_t address, size;
	const unsigned char *bytes; /* NULL: zeros (.bss) */
	uint32_t member;
	uint32_t unit; /* size of one constant where equal ones are merged; else 0 */
	bool is_strings;
	bool is_code, is_writable, is_offset_table, is_stub;
};

struct code_relocation {
	uint64_t location; /* where the value goes */
	uint64_t value;    /* the location that it names, before the field's own offset */
	bool is_slot;      /* through the offset table (archive's side) */
};

struct code_symbol {
	const char *name;
	uint64_t address, size;
	bool is_function, is_global;
};

/* An instruction that is no padding. */
struct code_token {
	uint32_t hash;
	uint32_t offset; /* in the function */
};

struct code_reference {
	uint32_t token : 30; /* index in the function */
	uint32_t is_branch : 1;
	uint32_t is_slot : 1; /* an address that is read from the offset table */
	uint32_t function;    /* that holds the target; ARCHIVE_NONE: none does */
	uint64_t target;      /* within the same function: the token's index */
};

struct code_function {
	uint64_t address, size;
	const char *name; /* NULL: to be found */
	uint32_t section;
	uint32_t token, token_count; /* in the side's arrays */
	uint32_t reference, reference_count;
	uint32_t sum;                 /* of the tokens' hashes, in whatever order: equal ones have the same */
	bool is_exported, is_strange; /* strange: not decoded, never compared */
};

struct code_side {
	unsigned char *file;
	uint64_t file_size;
	VECTOR(struct code_section) sections; /* by address, as the other arrays */
	VECTOR(struct code_relocation) relocations;
	VECTOR(struct code_symbol) globals; /* by name */
	VECTOR(struct code_symbol) objects; /* data with a symbol and a size */
	VECTOR(struct code_function) functions;
	VECTOR(struct code_token) tokens;
	VECTOR(struct code_reference) references;
	uint32_t member_count;
};

void side_free(struct code_side *side);

/* Fills tokens and references of all functions; false: no memory. */
bool side_decode(struct code_side *side);

const struct code_section *side_section(const struct code_side *side, uint64_t address);
const struct code_relocation *side_relocation(const struct code_side *side, uint64_t location);
/* The function that holds the address; ARCHIVE_NONE when none does. */
uint32_t side_function(const struct code_side *side, uint64_t address);
const struct code_symbol *side_global(const struct code_side *side, const char *name);
/* The function's first token at or after the address: padding may stand there. */
uint32_t side_token(const struct code_side *side, const struct code_function *function, uint64_t address);
/* The object with data that holds the address, NULL when none does. */
const struct code_symbol *side_object(const struct code_side *side, uint64_t address);
/* Up to `*size` bytes of the file at the address; NULL when there are none. */
const unsigned char *side_bytes(const struct code_side *side, uint64_t address, uint64_t *size);
