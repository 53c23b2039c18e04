/*
 * The parts of archive.c: two sides of code that were compiled from one source,
 * in one form that can be compared.
 *
 * The object's side has the addresses of its file. The archive's side gets made-up
 * addresses, as if its members were linked one behind the other, so that on both
 * sides a place is one number. A symbol that neither side defines is a place too:
 * a number made of its name, the same on both sides.
 *
 * Everything here belongs to one call of archive_collect().
 */
#ifndef QUERYPROF_SYMBOL_ARCHIVE_PARTS_H
#define QUERYPROF_SYMBOL_ARCHIVE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "symbol/elf_image.h"

#define ARCHIVE_NONE UINT32_MAX

/* Made-up addresses: above all that an object has in its file. */
#define ARCHIVE_BASE (UINT64_C(1) << 48)
#define ARCHIVE_EXTERN (UINT64_C(1) << 63)

/* --- one instruction (token.c) ---------------------------------------- */

enum code_kind {
	CODE_PLAIN,
	CODE_PADDING,  /* does nothing: compilers align with it */
	CODE_BRANCH,   /* jump or call; `field` is its displacement */
	CODE_MEMORY,   /* names a place relative to the instruction pointer */
	CODE_SLOT,     /* as CODE_MEMORY, and could read an address from the offset table */
	CODE_ABSOLUTE, /* loads a 32-bit constant that a relocation may fill */
};

struct code_instruction {
	uint8_t length;
	uint8_t kind;
	uint8_t field;      /* offset of the displacement that names the place */
	uint8_t field_size; /* 1 or 4 */
	uint32_t hash;      /* of all but the displacement */
	uint32_t slot_hash; /* the same operation without the detour through the table */
};

/* False for bytes that are no x86-64 instruction we know. */
bool code_decode(const unsigned char *bytes, size_t size, struct code_instruction *instruction);

/* --- a side (archive_read.c) ---------------------------------------------------- */

struct code_section {
	uint64_t address, size;
	const unsigned char *bytes; /* NULL: zeros (.bss) */
	uint32_t member;
	uint32_t unit; /* size of one constant where equal ones are merged; else 0 */
	bool is_strings;
	bool is_code, is_writable, is_offset_table, is_stub;
};

struct code_relocation {
	uint64_t place; /* where the value goes */
	uint64_t value; /* the place that it names, before the field's own offset */
	bool is_slot;   /* through the offset table (archive's side) */
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

/* False: not usable, or no memory. side_free() in any case. */
bool side_read_object(struct code_side *side, const struct elf_image *image);
bool side_read_archive(struct code_side *side, const char *path, uint16_t machine);
void side_free(struct code_side *side);

/* Fills tokens and references of all functions; false: no memory. */
bool side_decode(struct code_side *side);

const struct code_section *side_section(const struct code_side *side, uint64_t address);
const struct code_relocation *side_relocation(const struct code_side *side, uint64_t place);
/* The function that holds the address; ARCHIVE_NONE when none does. */
uint32_t side_function(const struct code_side *side, uint64_t address);
const struct code_symbol *side_global(const struct code_side *side, const char *name);
/* The function's first token at or after the address: padding may stand there. */
uint32_t side_token(const struct code_side *side, const struct code_function *function, uint64_t address);
/* The object with data that holds the address, NULL when none does. */
const struct code_symbol *side_object(const struct code_side *side, uint64_t address);
/* Up to `*size` bytes of the file at the address; NULL when there are none. */
const unsigned char *side_bytes(const struct code_side *side, uint64_t address, uint64_t *size);

/* --- are two functions the same (archive_compare.c) -------------------------------- */

/* Places of the archive's side and those of the object that they turned out to be. */
struct place_map {
	uint64_t *keys, *values; /* key 0: free */
	size_t count, capacity;
};

bool place_map_put(struct place_map *map, uint64_t key, uint64_t value);
uint64_t place_map_get(const struct place_map *map, uint64_t key); /* 0: nothing */
void place_map_free(struct place_map *map);

/* Something that would be true if two functions are the same. */
struct code_guess {
	uint64_t archive, object;
};

struct comparison {
	const struct code_side *object, *archive;
	uint32_t *to_object;  /* function of the archive to one of the object */
	uint32_t *to_archive; /* and back; ARCHIVE_NONE where not known */
	struct place_map data_to_object, data_to_archive;
	VECTOR(struct code_guess) guesses; /* what the last comparison would imply */
	VECTOR(uint32_t) partners;         /* of the archive's instructions, in the last comparison */
	bool is_out_of_memory;
};

/* Instruction by instruction the same, and each place that they name is the same
 * one or may be: then it is among the guesses. `known` counts places that are. Where
 * one side reads an address from the offset table, which takes time, the compiler
 * may do it earlier than the other one computes it: there the instructions between
 * two jumps or calls may come in another order. */
bool compare_equal(struct comparison *comparison, uint32_t archive, uint32_t object, uint32_t *known);

/* Guesses from two functions that are the same one but were compiled differently:
 * places named in surroundings that occur once in each. */
void compare_context(struct comparison *comparison, uint32_t archive, uint32_t object);

/* --- members of another source (archive_strings.c) --------------------------------- */

/* Marks the members that have a string which the object does not have. False: no
 * memory. */
bool archive_find_foreign(const struct code_side *object, const struct code_side *archive, bool *is_foreign);

/* --- which function is which (archive_match.c) ------------------------------------ */

/* For each function of the archive the object's function that is proven to be the
 * same one, else ARCHIVE_NONE. malloc'ed; NULL: the two do not belong together, or
 * no memory. Decodes the sides once they seem to. */
uint32_t *archive_match(struct code_side *object, struct code_side *archive);

#endif
