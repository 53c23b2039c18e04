/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Ruby 2.7 to 3.4 (CRuby), by the offsets of its structures, which are the same within one of
 * these versions.
 *
 * The frames belong to a fiber, and the current one is known to Ruby's thread. So a frame is read only
 * while the thread holds the VM's lock: nothing moves then. A thread in a collection has the frames
 * of whatever code came to it, and not those of the query.
 *
 * Each frame must lead to an instruction sequence that contains its instruction, and to texts. So
 * a build with other structures has no call stacks.
 */
#include <stdbool.h>
#include <string.h>

#include "interpreter/language.h"
#include "interpreter/memory.h"

#define STACK_WORDS_MAX 0x10000000u

/* Offsets in bytes. */
enum {
	OBJECT_FLAGS = 0,
	DATA_POINTER = 32, /* of a typed object */
	CONTEXT_STACK = 0,
	CONTEXT_STACK_WORDS = 8,
	CONTEXT_NEWEST = 16,
	FRAME_INSTRUCTION = 0, /* the next one */
	FRAME_SEQUENCE = 16,
	SEQUENCE_BODY = 16,
	BODY_TYPE = 0,
	BODY_INSTRUCTIONS = 4, /* their number */
	BODY_FIRST = 8,
	BODY_PATH = 64,
	BODY_LABEL = 80,
	LINES_ENTRIES = 0, /* of the lines of a body */
	LINES_COUNT = 16,
	LINES_INDEX = 24,
	INDEX_BLOCKS = 48, /* after the packed numbers of the first instructions */
	BLOCK_BYTES = 80,
	BLOCK_RANKS = 8,
	BLOCK_BITS = 16,
	ARRAY_FIRST = 16, /* of a short array */
	TEXT_POINTER = 24,
};

/* Flags of an object. */
enum {
	TYPE_BITS = 0x1f,
	TYPE_CLASS = 0x02,
	TYPE_TEXT = 0x05,
	TYPE_ARRAY = 0x07,
	TYPE_DATA = 0x0c,
	TYPE_INTERNAL = 0x1a
};
enum { INTERNAL_SHIFT = 12, INTERNAL_BITS = 0xf, INTERNAL_SEQUENCE = 7 };
enum { BODY_IS_RESCUE = 4, BODY_IS_ENSURE = 5, BODY_IS_EVAL = 6 };
enum { IS_SHORT_ARRAY = 1 << 13, IS_LONG_TEXT = 1 << 13, SHORT_TEXT_SHIFT = 14, SHORT_TEXT_BITS = 0x1f };

struct ruby_layout {
	uint32_t thread_context; /* of the current fiber */
	uint32_t frame_bytes;
	uint32_t body_lines;
	uint32_t line_bytes;  /* of an entry, which begins with the line */
	uint32_t text_size;   /* 0: a short text has its size in the flags */
	uint32_t text_inline; /* the first byte of a short text */
	uint32_t body_parent; /* of the enclosing code; 0: not needed */
};

static const struct {
	int major, minor;
	struct ruby_layout layout;
} versions[] = {
	{ 2, 7, { 32, 56, 120, 8, 0, 16, 0 } },   { 3, 0, { 40, 56, 120, 8, 0, 16, 0 } },
	{ 3, 1, { 40, 64, 120, 12, 0, 16, 0 } },  { 3, 2, { 48, 64, 112, 12, 16, 24, 0 } },
	{ 3, 3, { 48, 56, 112, 12, 16, 24, 0 } }, { 3, 4, { 48, 56, 112, 12, 16, 24, 160 } },
};

/* What the loaded interpreter has. */
static struct {
	struct ruby_layout layout;
	uintptr_t vm, thread_class; /* addresses of pointers; vm 0: since 3.3 it is not exported */
	int (*has_lock)(void);
	int (*is_collecting)(void);
	uintptr_t (*current_thread)(void);
} ruby;

static uintptr_t find(const struct dl_phdr_info *info)
{
	uintptr_t version = language_symbol(info, "ruby_api_version", STT_OBJECT);
	uintptr_t has_lock = language_symbol(info, "ruby_thread_has_gvl_p", STT_FUNC);
	uintptr_t is_collecting = language_symbol(info, "rb_during_gc", STT_FUNC);
	uintptr_t current_thread = language_symbol(info, "rb_thread_current", STT_FUNC);
	const int *numbers = (const int *)version;

	ruby.vm = language_symbol(info, "ruby_current_vm_ptr", STT_OBJECT);
	ruby.thread_class = language_symbol(info, "rb_cThread", STT_OBJECT);
	if (!version || !has_lock || !is_collecting || !current_thread || !ruby.thread_class)
		return 0;
	ruby.has_lock = (int (*)(void))has_lock;
	ruby.is_collecting = (int (*)(void))is_collecting;
	ruby.current_thread = (uintptr_t(*)(void))current_thread;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (numbers[0] == versions[i].major && numbers[1] == versions[i].minor) {
			ruby.layout = versions[i].layout;
			return current_thread;
		}
	return 0;
}

static uintptr_t flags_of(struct memory *memory, uintptr_t object)
{
	return object % sizeof(uintptr_t) == 0 ? memory_word(memory, object + OBJECT_FLAGS) : 0;
}

static bool has_type(struct memory *memory, uintptr_t object, unsigned type)
{
	return object && (flags_of(memory, object) & TYPE_BITS) == type;
}

static bool is_sequence(struct memory *memory, uintptr_t object)
{
	return has_type(memory, object, TYPE_INTERNAL) &&
	       (flags_of(memory, object) >> INTERNAL_SHIFT & INTERNAL_BITS) == INTERNAL_SEQUENCE;
}

static uint32_t number_at(struct memory *memory, uintptr_t at)
{
	uint32_t number;

	return memory_read(memory, at, &number, sizeof(number)) ? number : 0;
}

/* Cut to `room`. 0: it is empty, or no text. */
static size_t read_text(struct memory *memory, uintptr_t text, char *to, size_t room)
{
	uintptr_t flags, at = text + ruby.layout.text_inline;
	size_t size;

	if (!has_type(memory, text, TYPE_TEXT))
		return 0;
	flags = flags_of(memory, text);
	size = ruby.layout.text_size ? memory_word(memory, text + ruby.layout.text_size)
	                             : flags >> SHORT_TEXT_SHIFT & SHORT_TEXT_BITS;
	if (flags & IS_LONG_TEXT) {
		size = memory_word(memory, text + 16);
		at = memory_word(memory, text + TEXT_POINTER);
	}
	size = size < room ? size : room;
	return size && memory_read(memory, at, to, size) ? size : 0;
}

/* The path as the program names it and, if that is relative, the absolute one that Ruby has found: a path is
 * one text, or an array of both. */
static size_t read_path(struct memory *memory, uintptr_t path, char to[CALL_FILE_BYTES])
{
	char absolute[CALL_FILE_BYTES];
	size_t size, absolute_size;

	if (!has_type(memory, path, TYPE_ARRAY))
		return read_text(memory, path, to, CALL_FILE_BYTES);
	if (!(flags_of(memory, path) & IS_SHORT_ARRAY))
		return 0;
	size = read_text(memory, memory_word(memory, path + ARRAY_FIRST), to, CALL_FILE_BYTES);
	if (!size || to[0] == '/')
		return size;
	absolute_size = read_text(memory, memory_word(memory, path + ARRAY_FIRST + sizeof(uintptr_t)),
	                          absolute, CALL_FILE_BYTES);
	if (!absolute_size || absolute[0] != '/')
		return size;
	memcpy(to, absolute, absolute_size);
	return absolute_size;
}

/* --- lines -------------------------------------------------------------------------------------- */

/* How many of the positions that begin a new entry are at most `position`: Ruby's succ_index_lookup().
 * Positions below 54 have 7 bits each, nine a word. The others are bits of blocks of 512 with the
 * number before the block and, in 9 bits each, that before each further word. */
static uint32_t entries_up_to(struct memory *memory, uintptr_t index, uint32_t position)
{
	enum { PACKED = 54, PACKED_PER_WORD = 9, PACKED_BITS = 7, BLOCK = 512, WORD = 64, RANK_BITS = 9 };
	uint64_t bits;
	uintptr_t block;
	uint32_t word, before;

	if (position < PACKED)
		return memory_word(memory, index + position / PACKED_PER_WORD * sizeof(uint64_t)) >>
		               position % PACKED_PER_WORD * PACKED_BITS &
		       0x7f;
	position -= PACKED;
	block = index + INDEX_BLOCKS + (uintptr_t)(position / BLOCK) * BLOCK_BYTES;
	word = position % BLOCK / WORD;
	before = word ? memory_word(memory, block + BLOCK_RANKS) >> (word - 1) * RANK_BITS & 0x1ff : 0;
	bits = memory_word(memory, block + BLOCK_BITS + word * sizeof(uint64_t));
	return number_at(memory, block) + before +
	       (uint32_t)__builtin_popcountll(bits << (WORD - 1 - position % WORD));
}

/* 0: not known. */
static uint32_t line_of(struct memory *memory, uintptr_t body, uint32_t position)
{
	uintptr_t lines = body + ruby.layout.body_lines;
	uintptr_t entries = memory_word(memory, lines + LINES_ENTRIES);
	uintptr_t index = memory_word(memory, lines + LINES_INDEX);
	uint32_t count = number_at(memory, lines + LINES_COUNT);
	uint32_t entry = count == 1 ? 1 : index ? entries_up_to(memory, index, position) : 0;

	if (!entries || !entry || entry > count)
		return 0;
	return number_at(memory, entries + (uintptr_t)(entry - 1) * ruby.layout.line_bytes);
}

/* --- frames ------------------------------------------------------------------------------------- */

static bool is_rescue(uint32_t type)
{
	return type == BODY_IS_RESCUE || type == BODY_IS_ENSURE;
}

/* Since 3.4 the name of a rescue, an ensure or an eval is that of the code around it. */
static size_t read_function(struct memory *memory, uintptr_t body, char to[CALL_FUNCTION_BYTES])
{
	for (int walked = 0; ruby.layout.body_parent && walked < LANGUAGE_FRAMES_WALKED_MAX; walked++) {
		uint32_t type = number_at(memory, body + BODY_TYPE);
		uintptr_t parent = is_rescue(type) || type == BODY_IS_EVAL
		                           ? memory_word(memory, body + ruby.layout.body_parent)
		                           : 0;

		if (!is_sequence(memory, parent))
			break;
		body = memory_word(memory, parent + SEQUENCE_BODY);
	}
	return read_text(memory, memory_word(memory, body + BODY_LABEL), to, CALL_FUNCTION_BYTES);
}

/* A function in C has no place in a file, and is left out. Since 3.4 a rescue and the code around it are one
 * frame. False: the stack is full, or what looks like a frame is none. */
static bool put_frame(struct call_stack *stack, uintptr_t frame, bool *is_around_rescue)
{
	struct memory *memory = stack->memory;
	uintptr_t next = memory_word(memory, frame + FRAME_INSTRUCTION);
	uintptr_t sequence = memory_word(memory, frame + FRAME_SEQUENCE);
	uintptr_t body, first, position;
	char file[CALL_FILE_BYTES], function[CALL_FUNCTION_BYTES];
	size_t file_size;
	bool is_left_out = *is_around_rescue;

	if (!next || !sequence)
		return true;
	if (!is_sequence(memory, sequence))
		return false;
	body = memory_word(memory, sequence + SEQUENCE_BODY);
	first = memory_word(memory, body + BODY_FIRST);
	position = (next - first) / sizeof(uintptr_t);
	if (!first || next < first || position > number_at(memory, body + BODY_INSTRUCTIONS))
		return false;
	*is_around_rescue = ruby.layout.body_parent && is_rescue(number_at(memory, body + BODY_TYPE));
	if (is_left_out)
		return true;
	file_size = read_path(memory, memory_word(memory, body + BODY_PATH), file);
	return file_size &&
	       language_put_frame(stack, line_of(memory, body, position ? (uint32_t)position - 1 : 0), file,
	                          file_size, function, read_function(memory, body, function));
}

/* Whether Ruby has begun and has not ended: only then its functions may be called. Its end unmaps its
 * objects, and so the class of threads. */
static bool is_alive(struct memory *memory)
{
	return (!ruby.vm || memory_word(memory, ruby.vm)) &&
	       has_type(memory, memory_word(memory, ruby.thread_class), TYPE_CLASS);
}

/* 0: the thread is not Ruby's, or has released the lock, or collects. */
static uintptr_t current_thread(struct memory *memory)
{
	uintptr_t thread;

	if (!is_alive(memory) || !ruby.has_lock() || ruby.is_collecting())
		return 0;
	thread = ruby.current_thread();
	return has_type(memory, thread, TYPE_DATA) ? memory_word(memory, thread + DATA_POINTER) : 0;
}

/* The frames are an array at the end of the current fiber's stack, the newest first. The oldest one is none
 * of the program's. */
static void read_stack(struct call_stack *stack, uintptr_t thread)
{
	struct memory *memory = stack->memory;
	uintptr_t context = memory_word(memory, thread + ruby.layout.thread_context), begin, words, frame;
	bool is_around_rescue = false;

	if (!context)
		return;
	begin = memory_word(memory, context + CONTEXT_STACK);
	words = memory_word(memory, context + CONTEXT_STACK_WORDS);
	frame = memory_word(memory, context + CONTEXT_NEWEST);
	if (!begin || words > STACK_WORDS_MAX)
		return;
	for (int walked = 0;
	     frame - begin < words * sizeof(uintptr_t) - ruby.layout.frame_bytes &&
	     walked < LANGUAGE_FRAMES_WALKED_MAX && put_frame(stack, frame, &is_around_rescue);
	     walked++)
		frame += ruby.layout.frame_bytes;
}

const struct frame_reader frames_ruby = { read_stack,
	                                  { "/gems/", "/lib/ruby/", "/site_ruby/", "<internal:", "(eval)" } };
const struct language language_ruby = { find, current_thread, &frames_ruby };
