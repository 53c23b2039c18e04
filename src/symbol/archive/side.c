/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions as sequences of tokens and of the locations that they name, and the
 * look-ups of a side.
 */
#include "symbol/archive/side.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "symbol/archive/token.h"
#include "symbol/plt.h"

void side_free(struct code_side *side)
{
	free(side->file);
	vector_free(&side->sections);
	vector_free(&side->relocations);
	vector_free(&side->globals);
	vector_free(&side->objects);
	vector_free(&side->functions);
	vector_free(&side->tokens);
	vector_free(&side->references);
	*side = (struct code_side){ 0 };
}

/* --- look-ups: the last item at or before an address ------------------------------ */

/* NULL when there is none. */
#define FIND_LAST(list, field, wanted)                                                                       \
	({                                                                                                   \
		size_t before_ = SEARCH_COUNT((list).count, i, (list).items[i].field <= (wanted));           \
		before_ ? &(list).items[before_ - 1] : NULL;                                                 \
	})

const struct code_section *side_section(const struct code_side *side, uint64_t address)
{
	const struct code_section *found = FIND_LAST(side->sections, address, address);
	return found && address - found->address < found->size ? found : NULL;
}

const struct code_relocation *side_relocation(const struct code_side *side, uint64_t location)
{
	const struct code_relocation *found = FIND_LAST(side->relocations, location, location);
	return found && found->location == location ? found : NULL;
}

uint32_t side_function(const struct code_side *side, uint64_t address)
{
	const struct code_function *found = FIND_LAST(side->functions, address, address);
	return found && address - found->address < found->size ? (uint32_t)(found - side->functions.items)
	                                                       : ARCHIVE_NONE;
}

uint32_t side_token(const struct code_side *side, const struct code_function *function, uint64_t address)
{
	const struct code_token *tokens = side->tokens.items + function->token;
	return (uint32_t)SEARCH_COUNT(function->token_count, i,
	                              tokens[i].offset < address - function->address);
}

const struct code_symbol *side_object(const struct code_side *side, uint64_t address)
{
	const struct code_symbol *found = FIND_LAST(side->objects, address, address);
	return found && address - found->address < found->size ? found : NULL;
}

const struct code_symbol *side_global(const struct code_side *side, const char *name)
{
	const struct code_symbol *globals = side->globals.items;
	size_t at = SEARCH_COUNT(side->globals.count, i, strcmp(globals[i].name, name) < 0);
	return at < side->globals.count && strcmp(globals[at].name, name) == 0 ? &globals[at] : NULL;
}

const unsigned char *side_bytes(const struct code_side *side, uint64_t address, uint64_t *size)
{
	const struct code_section *section = side_section(side, address);
	if (!section || !section->bytes)
		return NULL;
	uint64_t room = section->size - (address - section->address);
	if (*size > room)
		*size = room;
	return section->bytes + (address - section->address);
}

/* --- decoding --------------------------------------------------------------------- */

/* Where a call into a stub ends up: the slot's relocation says whose address it gets. */
static uint64_t follow_stub(const struct code_side *side, uint64_t target)
{
	const struct code_section *section = side_section(side, target);
	if (!section || !section->is_stub || !section->bytes)
		return target;
	uint64_t at = target - section->address;
	const struct code_relocation *slot =
		side_relocation(side, plt_decode(section->bytes + at, (size_t)(section->size - at), target));
	return slot ? slot->value : target;
}

struct decoder {
	struct code_side *side;
	const struct code_section *section; /* of the function */
	uint32_t relocation;                /* the next one at or after the instruction */
};

/* The location that the instruction names, and its token's hash. */
static uint64_t resolve(const struct decoder *decoder, const struct code_instruction *instruction,
                        const unsigned char *bytes, uint64_t address, uint32_t *hash)
{
	const struct code_side *side = decoder->side;
	uint64_t next = address + instruction->length, location = address + instruction->field;
	const struct code_relocation *relocation = decoder->relocation < side->relocations.count
	                                                   ? &side->relocations.items[decoder->relocation]
	                                                   : NULL;
	if (relocation && relocation->location == location && instruction->field_size == 4) {
		if (instruction->kind == CODE_ABSOLUTE) {
			*hash = instruction->slot_hash;
			return relocation->value;
		}
		if (relocation->is_slot && instruction->kind == CODE_SLOT)
			*hash = instruction->slot_hash;
		else if (relocation->is_slot)
			return 0;
		return relocation->value ? relocation->value + (next - location) : 0;
	}
	int32_t displacement;
	if (instruction->field_size == 1) {
		displacement = (int8_t)bytes[instruction->field];
	} else {
		memcpy(&displacement, bytes + instruction->field, sizeof(displacement));
	}
	uint64_t target = next + (uint64_t)(int64_t)displacement;
	if (instruction->kind == CODE_BRANCH)
		return target - decoder->section->address < decoder->section->size
		               ? target
		               : follow_stub(side, target);
	if (instruction->kind == CODE_SLOT) {
		const struct code_section *section = side_section(side, target);
		const struct code_relocation *slot =
			section && section->is_offset_table ? side_relocation(side, target) : NULL;
		if (slot) {
			*hash = instruction->slot_hash;
			return slot->value;
		}
	}
	return target;
}

/* Which functions the references of a decoded one lead to. */
static void resolve_functions(const struct code_side *side, const struct code_function *function)
{
	for (uint32_t i = 0; i < function->reference_count; i++) {
		struct code_reference *reference = &side->references.items[function->reference + i];
		uint64_t target = reference->target;
		reference->function = ARCHIVE_NONE;
		if (target - function->address < function->size) {
			reference->function = (uint32_t)(function - side->functions.items);
			reference->target = side_token(side, function, target);
		} else if (target && !(target & ARCHIVE_EXTERN)) {
			reference->function = side_function(side, target);
		}
	}
}

static bool decode_function(struct decoder *decoder, struct code_function *function)
{
	struct code_side *side = decoder->side;
	const struct code_section *section = &side->sections.items[function->section];
	decoder->section = section;
	const unsigned char *bytes = section->bytes + (function->address - section->address);
	function->token = side->tokens.count;
	function->reference = side->references.count;
	for (uint64_t at = 0; at < function->size;) {
		struct code_instruction instruction;
		uint64_t address = function->address + at;
		if (!code_decode(bytes + at, (size_t)(function->size - at), &instruction)) {
			function->is_strange = true;
			break;
		}
		while (decoder->relocation < side->relocations.count &&
		       side->relocations.items[decoder->relocation].location < address)
			decoder->relocation++;
		bool names_location = instruction.kind != CODE_PLAIN && instruction.kind != CODE_PADDING;
		if (instruction.kind == CODE_ABSOLUTE)
			names_location = decoder->relocation < side->relocations.count &&
			                 side->relocations.items[decoder->relocation].location ==
			                         address + instruction.field;
		if (names_location) {
			uint32_t plain_hash = instruction.hash;
			uint64_t target =
				resolve(decoder, &instruction, bytes + at, address, &instruction.hash);
			if (!vector_push(&side->references,
			                 (struct code_reference){
						 .token = (side->tokens.count - function->token) & 0x3fffffff,
						 .is_branch = instruction.kind == CODE_BRANCH,
						 .is_slot = instruction.kind == CODE_SLOT &&
			                                    instruction.hash != plain_hash,
						 .target = target }))
				return false;
		}
		if (instruction.kind != CODE_PADDING)
			function->sum += instruction.hash;
		if (instruction.kind != CODE_PADDING &&
		    !vector_push(&side->tokens,
		                 (struct code_token){ .hash = instruction.hash, .offset = (uint32_t)at }))
			return false;
		at += instruction.length;
	}
	function->token_count = side->tokens.count - function->token;
	function->reference_count = side->references.count - function->reference;
	resolve_functions(side, function);
	return true;
}

bool side_decode(struct code_side *side)
{
	struct decoder decoder = { .side = side };
	/* An instruction has about four bytes. */
	uint64_t size = 4096;
	for (uint32_t i = 0; i < side->functions.count; i++)
		size += side->functions.items[i].size;
	if (!vector_reserve(&side->tokens, size / 4 + size / 16))
		return false;
	for (uint32_t i = 0; i < side->functions.count; i++)
		if (!decode_function(&decoder, &side->functions.items[i]))
			return false;
	return true;
}
