/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of JavaScript in node 18 to 26, by the constants that V8 publishes for debuggers (node_layout.h).
 * V8's own function for stacks allocates memory of its collector, so nothing is called but
 * v8::Isolate::TryGetCurrent(), which returns a thread-local word, and GetEmbeddedCodeRange(), which returns
 * where the builtins are in the program.
 *
 * An isolate belongs to one thread at a time. While it executes a function in C++, which SQLite's drivers
 * are, it has the address of that function's frame, and from there on each frame has the address of the next.
 * Older frames of JavaScript, which called C++ that called JavaScript, follow after a frame that has such an
 * address, too. A collection moves objects, and its callbacks may call SQLite: then there is no call stack.
 * No other thread's collection moves an isolate's objects during such a call.
 *
 * Where the isolate has these addresses, and those of its builtins, is not published, and is found: one word
 * leads to a frame of C++, one to the oldest frame of JavaScript, and more than a thousand words after one
 * another are addresses of aligned code. That may be a copy of the builtins, and frames return to either.
 */
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "interpreter/language.h"
#include "interpreter/memory.h"
#include "interpreter/node_code.h"
#include "interpreter/node_heap.h"
#include "interpreter/node_layout.h"

#define ISOLATE_BYTES_MAX 0x20000u
#define BUILTINS_MIN 1000u
#define BUILTINS_BYTES_MAX 0x1000000u
#define BUILTIN_ALIGNMENT 32u
#define STACK_BYTES_MAX 0x40000000ul
#define ENTRY_WORDS 24
#define SCOPE_NAME_WORDS 5
#define LINES_KNOWN 512u
#define LINE_BITS 24

/* Offsets in bytes. */
enum {
	FRAME_TYPE = -8,
	FRAME_FUNCTION = -16,
	FRAME_NEXT = 8,
	SCRIPT_SOURCE = 8,
	SCRIPT_NAME = 16,
	SCRIPT_LINE = 24, /* the line that its text begins in, from 0 on */
	SCRIPT_NUMBER = 64,
	SCOPE_COUNT = 24, /* of local names */
};

/* What an isolate does. */
enum { STATE_COLLECTING = 1, STATES = 16 };

/* The types of functions: plain ones, constructors of the language, and classes. */
enum { FUNCTION_TYPES = 17 };

static struct {
	struct node_layout layout;
	uintptr_t (*isolate)(void);
	void (*find_builtins)(uintptr_t isolate, uintptr_t *first, size_t *size);
	/* Atomic; of an isolate, in bytes; 0: not found. */
	uint32_t exit, entry, builtins, builtins_end;
	uint32_t trials; /* atomic */
	/* Lines of places, each with a hash that has more bits than can collide by accident; atomic. */
	uint64_t lines[LINES_KNOWN];
} node;

static uintptr_t find(const struct dl_phdr_info *info)
{
	uintptr_t isolate = language_symbol(info, "_ZN2v87Isolate13TryGetCurrentEv", STT_FUNC);

	uintptr_t builtins = language_symbol(info, "_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm", STT_FUNC);

	if (!isolate || !builtins || !node_layout_read(info, &node.layout))
		return 0;
	node.isolate = (uintptr_t(*)(void))isolate;
	node.find_builtins = (void (*)(uintptr_t, uintptr_t *, size_t *))builtins;
	return isolate;
}

/* --- where an isolate has what is looked for ------------------------------------------------------ */

static uintptr_t frame_word(struct memory *memory, uintptr_t frame, int offset)
{
	return memory_word(memory, frame + (uintptr_t)(intptr_t)offset);
}

/* The type of a frame that is no function's; -1: it is one's. */
static int32_t frame_type(struct memory *memory, uintptr_t frame)
{
	uintptr_t word = frame_word(memory, frame, FRAME_TYPE);

	return node_is_number(word) && word < 256 ? (int32_t)(word >> 1) : -1;
}

static bool is_entry(int32_t type)
{
	return type == node.layout.entry || type == node.layout.construct_entry;
}

/* The type of a frame that is older than `newer`; -1: it is none. */
static int32_t older_type(struct memory *memory, uintptr_t frame, uintptr_t newer)
{
	return frame % sizeof(uintptr_t) || frame - newer - 1 >= STACK_BYTES_MAX ? -1
	                                                                         : frame_type(memory, frame);
}

/* Whether C++ was called there. */
static bool is_exit(struct memory *memory, uintptr_t frame, uintptr_t newer)
{
	int32_t type = older_type(memory, frame, newer);

	for (int i = 0; type > 0 && i < NODE_EXIT_FRAMES; i++)
		if (type == node.layout.exits[i])
			return memory_word(memory, frame) - frame - 1 < STACK_BYTES_MAX;
	return false;
}

static bool is_code(uintptr_t word, uintptr_t near)
{
	return word && word % BUILTIN_ALIGNMENT == 0 &&
	       word - near + BUILTINS_BYTES_MAX < 2 * BUILTINS_BYTES_MAX;
}

/* False: not found, or not the only one. */
static bool find_offsets(struct memory *memory, uintptr_t isolate, uintptr_t newer)
{
	uint32_t exit = 0, exits = 0, entry = 0, entries = 0, run = 0, lowest = 0, highest = 0, at;
	uintptr_t word, low = 0, high = 0;

	for (at = 0; at < ISOLATE_BYTES_MAX && memory_read(memory, isolate + at, &word, sizeof(word));
	     at += sizeof(word)) {
		if (run <= BUILTINS_MIN && is_exit(memory, word, newer)) {
			exit = at;
			exits++;
		} else if (run <= BUILTINS_MIN && is_entry(older_type(memory, word, newer))) {
			entry = at;
			entries++;
		}
		if (!is_code(word, run ? low : word)) {
			if (run > BUILTINS_MIN)
				break;
			run = 0;
			continue;
		}
		if (!run++) {
			low = high = word;
			lowest = highest = at;
		} else if (word < low) {
			low = word;
			lowest = at;
		} else if (word > high) {
			high = word;
			highest = at;
		}
	}
	if (exits != 1 || entries != 1 || run <= BUILTINS_MIN)
		return false;
	__atomic_store_n(&node.entry, entry, __ATOMIC_RELAXED);
	__atomic_store_n(&node.builtins, lowest, __ATOMIC_RELAXED);
	__atomic_store_n(&node.builtins_end, highest, __ATOMIC_RELAXED);
	/* Release: a thread that reads it also sees the others. */
	__atomic_store_n(&node.exit, exit, __ATOMIC_RELEASE);
	return true;
}

/* --- functions ------------------------------------------------------------------------------------ */

/* After the names of a function's variables, and a number for each, are its own name, and the one that the
 * source suggests; numbers may be in between. Many names are kept in a table. A module's scope has one number
 * more. Any other object ends what may be a name. */
static size_t name_in_scope(const struct node_reader *reader, uintptr_t scope, char *to, size_t room)
{
	int32_t at = (node.layout.scope_first + 1) * (int32_t)sizeof(uintptr_t);
	int32_t count = node_number(node_field(reader, scope, SCOPE_COUNT));
	uintptr_t word = node_field(reader, scope, at);
	size_t size;

	if (count < 0 || count > 0xffff)
		return 0;
	if (count && node_is_number(word)) {
		at += (int32_t)sizeof(uintptr_t);
		word = node_field(reader, scope, at);
	}
	if (count)
		at += (node_type(reader, word) < node.layout.text_end ? 2 * count : count + 1) *
		      (int32_t)sizeof(uintptr_t);
	for (int i = 0; i < SCOPE_NAME_WORDS; i++, at += (int32_t)sizeof(uintptr_t)) {
		word = node_field(reader, scope, at);
		if (node_is_number(word))
			continue;
		size = node_text(reader, word, to, room);
		if (size || (uint32_t)node_type(reader, word) >= (uint32_t)node.layout.text_end)
			return size;
	}
	return 0;
}

static size_t read_function(const struct node_reader *reader, uintptr_t shared, char to[CALL_FUNCTION_BYTES])
{
	static const char none[] = "<anonymous>";
	uintptr_t name = node_field(reader, shared, node.layout.shared_name);
	size_t size = node_type(reader, name) == node.layout.scope
	                      ? name_in_scope(reader, name, to, CALL_FUNCTION_BYTES)
	                      : node_text(reader, name, to, CALL_FUNCTION_BYTES);

	if (size)
		return size;
	memcpy(to, none, sizeof(none) - 1);
	return sizeof(none) - 1;
}

static int digit_of(char digit)
{
	return digit >= '0' && digit <= '9'   ? digit - '0'
	       : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
	       : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
	                                      : -1;
}

/* The path of a file's URL, as modules have it. */
static size_t path_of_url(char *text, size_t size)
{
	static const char scheme[] = "file://";
	size_t to = 0;

	if (size < sizeof(scheme) || memcmp(text, scheme, sizeof(scheme) - 1))
		return size;
	for (size_t i = sizeof(scheme) - 1; i < size; i++) {
		int high = text[i] == '%' && i + 2 < size ? digit_of(text[i + 1]) : -1;
		int low = high < 0 ? -1 : digit_of(text[i + 2]);

		text[to++] = low < 0 ? text[i] : (char)(high << 4 | low);
		i += low < 0 ? 0 : 2;
	}
	return to;
}

static size_t read_file(const struct node_reader *reader, uintptr_t script, char to[CALL_FILE_BYTES])
{
	static const char none[] = "<anonymous>";
	size_t size = node_text(reader, node_field(reader, script, SCRIPT_NAME), to, CALL_FILE_BYTES);

	if (size)
		return path_of_url(to, size);
	memcpy(to, none, sizeof(none) - 1);
	return sizeof(none) - 1;
}

/* A source is long, so lines are kept. Its number and name tell it from others of the same isolate, and from
 * those of workers. */
static uint32_t line_of(const struct node_reader *reader, uintptr_t script, int32_t position,
                        const char *file, size_t file_size)
{
	uintptr_t source = node_field(reader, script, SCRIPT_SOURCE);
	struct hash hash = hash_bytes(file, file_size);
	uint64_t *kept, known;
	uint32_t line;

	hash_word(&hash, (uint64_t)position);
	hash_word(&hash, node_field(reader, script, SCRIPT_NUMBER));
	hash_word(&hash, node_field(reader, source, 8)); /* its length, and its own hash */
	hash = hash_end(hash);
	kept = &node.lines[hash.second % LINES_KNOWN];
	known = __atomic_load_n(kept, __ATOMIC_RELAXED); /* one word: nothing else must be seen with it */
	if (known && known >> LINE_BITS == hash.first >> LINE_BITS)
		return known & ((1u << LINE_BITS) - 1);
	line = node_text_line(reader, source, (uint32_t)position);
	if (line)
		line += (uint32_t)node_number(node_field(reader, script, SCRIPT_LINE));
	if (line && line < 1u << LINE_BITS)
		__atomic_store_n(kept, hash.first >> LINE_BITS << LINE_BITS | line, __ATOMIC_RELAXED);
	return line;
}

/* False: the stack is full. V8's own functions have no source, and are left out. */
static bool put_place(struct call_stack *stack, const struct node_reader *reader,
                      const struct node_place *place)
{
	uintptr_t script = node_field(reader, place->shared, node.layout.shared_script);
	char file[CALL_FILE_BYTES], function[CALL_FUNCTION_BYTES];
	size_t file_size;
	uint32_t line;

	if (node_type(reader, script) != node.layout.script)
		return true;
	file_size = read_file(reader, script, file);
	line = place->position < 0 ? 0 : line_of(reader, script, place->position, file, file_size);
	return language_put_frame(stack, line, file, file_size, function,
	                          read_function(reader, place->shared, function));
}

/* --- frames --------------------------------------------------------------------------------------- */

/* False: the stack is full, or what looks like a frame is none. */
static bool put_frame(struct call_stack *stack, const struct node_reader *reader, struct node_frame *frame)
{
	struct node_place places[NODE_PLACES_MAX];
	uintptr_t function = frame_word(stack->memory, frame->at, FRAME_FUNCTION);
	uintptr_t script;
	unsigned count;

	if ((uint32_t)(node_type(reader, function) - node.layout.function) >= FUNCTION_TYPES)
		return true;
	frame->shared = node_field(reader, function, node.layout.function_shared);
	if (node_type(reader, frame->shared) != node.layout.shared)
		return false;
	script = node_field(reader, frame->shared, node.layout.shared_script);
	if (node_type(reader, script) != node.layout.script)
		return true;
	count = node_places(reader, frame, places);
	for (unsigned i = 0; i < count; i++)
		if (!put_place(stack, reader, &places[i]))
			return false;
	return count;
}

/* The frame in which older JavaScript called the C++ that called the newer; 0: there is none. */
static uintptr_t older_exit(struct memory *memory, uintptr_t entry)
{
	for (int i = 2; i <= ENTRY_WORDS; i++) {
		uintptr_t word = memory_word(memory, entry - (uintptr_t)i * sizeof(uintptr_t));

		if (is_exit(memory, word, entry))
			return word;
	}
	return 0;
}

/* What the isolate does is two words after the address of the oldest frame of JavaScript. */
static bool is_collecting(struct memory *memory, uintptr_t isolate)
{
	uint16_t state;

	return !memory_read(memory,
	                    isolate + __atomic_load_n(&node.entry, __ATOMIC_RELAXED) + 2 * sizeof(uintptr_t),
	                    &state, sizeof(state)) ||
	       state == STATE_COLLECTING || state >= STATES;
}

/* The frame of the C++ function that the isolate executes; 0: none. */
static uintptr_t newest_exit(struct memory *memory, uintptr_t isolate, uintptr_t newer)
{
	/* Acquire: see find_offsets(). */
	uint32_t offset = __atomic_load_n(&node.exit, __ATOMIC_ACQUIRE);
	uintptr_t exit;

	if (!offset && language_tries(&node.trials) && find_offsets(memory, isolate, newer))
		offset = __atomic_load_n(&node.exit, __ATOMIC_RELAXED);
	if (!offset || is_collecting(memory, isolate))
		return 0;
	exit = memory_word(memory, isolate + offset);
	return exit && is_exit(memory, exit, newer) ? exit : 0;
}

static uintptr_t thread_isolate(struct memory *memory)
{
	(void)memory;
	return node.isolate();
}

static void read_stack(struct call_stack *stack, uintptr_t isolate)
{
	struct memory *memory = stack->memory;
	const struct node_reader reader = { &node.layout, memory };
	struct node_frame frame = { 0 };
	uintptr_t at = newest_exit(memory, isolate, (uintptr_t)__builtin_frame_address(0)), older;

	if (!at)
		return;
	node.find_builtins(isolate, &frame.builtins, &frame.builtins_size);
	frame.copied = memory_word(memory, isolate + __atomic_load_n(&node.builtins, __ATOMIC_RELAXED));
	frame.copied_size =
		memory_word(memory, isolate + __atomic_load_n(&node.builtins_end, __ATOMIC_RELAXED)) -
		frame.copied;
	for (int walked = 0; at && walked < LANGUAGE_FRAMES_WALKED_MAX; walked++) {
		int32_t type = frame_type(memory, at);

		frame.at = at;
		if (type < 0 && !put_frame(stack, &reader, &frame))
			return;
		frame.next = frame_word(memory, at, FRAME_NEXT);
		older = is_entry(type) ? older_exit(memory, at) : memory_word(memory, at);
		at = older - at - 1 < STACK_BYTES_MAX ? older : 0;
	}
}

static const struct frame_reader frames_node = { read_stack,
	                                         { "/node_modules/", "/.yarn/", "node:", "<anonymous>" } };
const struct language language_node = { find, thread_isolate, &frames_node };
