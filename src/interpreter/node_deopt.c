/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/node_deopt.h"

#include <string.h>

#define CALLS_MAX 65536u
#define STEPS_MAX 65536
#define ENTRY_BYTES_MAX 32

/* Offsets in bytes of the table of calls. */
enum { CALLS_COUNT = 4, CALLS_FORMAT = 8, CALLS_FIRST = 12, MAGLEV_CALLS_FIRST = 16, MAGLEV_ENTRY_MORE = 1 };

/* Of the data for deoptimization, in elements: the lists, and after the positions of inlined calls, with
 * three numbers in between, an entry of three for each place. The literals that are bytecodes come before the
 * others. */
enum { LISTS = 0, ENTRIES_AFTER = 4, ENTRY_WORDS = 3, ENTRY_LIST = 1 };

/* How many operands an instruction of a list has. */
static const char operands[] = "643321343321003311101111111111111111101111121";
enum {
	INTERPRETED_FRAMES = 2,
	FUNCTION_FRAMES = 4,
	BEGIN = 14,
	BEGIN_END = 16,
	REPEAT = 44,
	INSTRUCTIONS = 45
};

/* A list, and the earlier one that it repeats. */
struct list {
	struct node_bytes bytes, earlier;
	uint64_t repeats;   /* instructions that are taken from the earlier one, with this one */
	unsigned not_taken; /* which passed since one was taken */
};

/* Little-endian. */
static uint32_t number_of_bytes(const unsigned char **bytes, unsigned count)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < count; i++)
		number |= (uint32_t) * (*bytes)++ << 8 * i;
	return number;
}

/* Which of the places for deoptimization the call is; -1: none. A call whose code V8 has discarded returns to
 * another place, which the table also has. */
static int64_t find_place(const struct node_reader *reader, const struct node_call *call)
{
	uint32_t count = node_half_word(reader, call->table + CALLS_COUNT);
	uint32_t format = node_half_word(reader, call->table + CALLS_FORMAT);
	unsigned registers = format >> 1 & 7, offset = format >> 4 & 7, place = format >> 7 & 7;
	unsigned size = 2 * offset + place + registers + (call->is_maglev ? MAGLEV_ENTRY_MORE : 0);
	uintptr_t at = call->table + (call->is_maglev ? MAGLEV_CALLS_FIRST : CALLS_FIRST);

	if (!(format & 1) || !offset || offset > 4 || !place || place > 4 || count > CALLS_MAX)
		return -1;
	for (uint32_t i = 0; i < count; i++, at += size) {
		unsigned char entry[ENTRY_BYTES_MAX];
		const unsigned char *next = entry;
		uint32_t after, number, discarded;

		if (!memory_read(reader->memory, at, entry, size))
			return -1;
		after = number_of_bytes(&next, offset);
		number = number_of_bytes(&next, place);
		discarded = number_of_bytes(&next, offset);
		/* Numbers are kept with one more: 0 is none. */
		if (after == call->offset || (discarded && discarded - 1 == call->offset))
			return (int64_t)number - 1;
	}
	return -1;
}

static int32_t signed_number(uint64_t number)
{
	return number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

static uint64_t next_operand(struct list *list)
{
	return node_bytes_next_number(list->repeats ? &list->earlier : &list->bytes);
}

static void skip_operands(struct list *list, int count)
{
	while (count-- > 0)
		next_operand(list);
}

static void skip_earlier(struct list *list)
{
	unsigned instruction = node_bytes_next(&list->earlier);

	for (int i = instruction < INSTRUCTIONS ? operands[instruction] - '0' : 0; i; i--)
		node_bytes_next_number(&list->earlier);
}

static unsigned next_instruction(struct list *list)
{
	unsigned instruction;

	if (list->repeats && --list->repeats)
		return node_bytes_next(&list->earlier);
	instruction = node_bytes_next(&list->bytes);
	if (instruction > INSTRUCTIONS)
		list->repeats = instruction - INSTRUCTIONS;
	else if (instruction == REPEAT)
		list->repeats = node_bytes_next_number(&list->bytes);
	if (!list->repeats) {
		list->not_taken++;
		return instruction;
	}
	for (; list->not_taken; list->not_taken--)
		skip_earlier(list);
	return node_bytes_next(&list->earlier);
}

/* Its frames that are functions' ones; 0: it is no list. */
static int32_t begin_list(struct list *list, const struct node_reader *reader, uintptr_t lists, int32_t at)
{
	uint64_t distance;
	unsigned instruction;

	memset(list, 0, sizeof(*list));
	if (at < 0 || !node_bytes_begin(&list->bytes, reader, lists) ||
	    (uint32_t)at >= list->bytes.end - list->bytes.at)
		return 0;
	list->earlier = list->bytes;
	list->bytes.at += (uint32_t)at;
	instruction = node_bytes_next(&list->bytes);
	if (instruction < BEGIN || instruction >= BEGIN_END)
		return 0;
	distance = node_bytes_next_number(&list->bytes);
	node_bytes_next_number(&list->bytes);
	if (distance > (uint32_t)at)
		return 0;
	list->earlier.at += (uint32_t)at - distance;
	list->not_taken = 1;
	return signed_number(node_bytes_next_number(&list->bytes));
}

/* A function's frame that is a builtin's is left out. False: it is none. */
static bool read_frame(const struct node_reader *reader, struct list *list, unsigned instruction,
                       uintptr_t deoptimization, struct node_place *place)
{
	int literals = reader->layout->inlined_literals;
	int32_t bytecode = signed_number(next_operand(list));
	int32_t function = signed_number(next_operand(list));
	int32_t bytecodes = signed_number(next_operand(list));

	skip_operands(list, operands[instruction] - '0' - 3);
	if (instruction >= INTERPRETED_FRAMES) {
		place->shared = 0;
		return true;
	}
	place->shared = node_element(reader, node_element(reader, deoptimization, literals), function);
	place->position = node_position_of_bytecode(
		reader, node_element(reader, node_element(reader, deoptimization, literals - 1), bytecodes),
		bytecode);
	return node_type(reader, place->shared) == reader->layout->shared;
}

unsigned node_deopt_places(const struct node_reader *reader, const struct node_call *call,
                           struct node_place places[NODE_PLACES_MAX])
{
	uintptr_t deoptimization =
		node_field(reader, call->code, reader->layout->version->code_deoptimization);
	int64_t number = find_place(reader, call);
	int64_t entry = reader->layout->inlined_positions + ENTRIES_AFTER + number * ENTRY_WORDS;
	uintptr_t at = number < 0 ? 0 : node_element(reader, deoptimization, entry + ENTRY_LIST);
	struct list list;
	int32_t left;
	unsigned count = 0;

	if (number < 0 || !node_is_number(at))
		return 0;
	left = begin_list(&list, reader, node_element(reader, deoptimization, LISTS), node_number(at));
	for (int steps = 0; left > 0 && steps < STEPS_MAX; steps++) {
		unsigned instruction = next_instruction(&list);

		if (list.bytes.is_over || list.earlier.is_over || instruction >= INSTRUCTIONS ||
		    (instruction >= BEGIN && instruction < BEGIN_END))
			return 0;
		if (instruction >= FUNCTION_FRAMES) {
			skip_operands(&list, operands[instruction] - '0');
			continue;
		}
		left--;
		if (count == NODE_PLACES_MAX ||
		    !read_frame(reader, &list, instruction, deoptimization, &places[count]))
			return 0;
		count += places[count].shared != 0;
	}
	if (left)
		return 0;
	for (unsigned i = 0; i < count / 2; i++) {
		struct node_place place = places[i];

		places[i] = places[count - 1 - i];
		places[count - 1 - i] = place;
	}
	return count;
}
