/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of CPython 3.8 to 3.14, by the offsets of its structures. 3.13 and 3.14 publish them
 * (_Py_DebugOffsets). Earlier ones are those of Include/cpython/ and Include/internal/ of each minor
 * version, which never change within one.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "interpreter/language.h"
#include "interpreter/memory.h"

/* How a version keeps the position in a code object, and its lines. */
enum python_lines {
	PYTHON_LINES_3_8,  /* offset of the last instruction; co_lnotab of 3.6 */
	PYTHON_LINES_3_10, /* its number; co_linetable of 3.10 */
	PYTHON_LINES_3_11, /* its address; the location table of 3.11 */
};

/* Offsets in bytes. */
struct python_layout {
	enum python_lines lines;
	uint32_t thread_frame; /* of a thread state: its newest frame, or a pointer to it */
	uint32_t cframe_frame; /* of that */
	bool has_cframe;
	uint32_t frame_back, frame_code, frame_instruction;
	uint32_t frame_owner; /* 0: all frames are Python's */
	uint32_t code_first_line, code_file, code_function, code_lines, code_bytes;
	uint32_t text_ascii, text_wide; /* of a str: its characters, if all are ASCII, and else */
};

/* What the loaded interpreter has. */
static struct {
	struct python_layout layout;
	void *(*thread_state)(void); /* PyGILState_GetThisThreadState(): a thread-local word, no lock */
	uintptr_t code_type, text_type, bytes_type;
	uint32_t state_thread; /* atomic; offset of a thread state's pthread_t; 0: not known */
} python;

#define STATE_WORDS_SEARCHED 64

#define LINES_BYTES 65536

/* Same in all versions: of an object its type; of a str or bytes their length; of a str its flags; of bytes
 * the first. */
enum { OBJECT_TYPE = 8, OBJECT_SIZE = 16, TEXT_FLAGS = 32, BYTES_FIRST = 32 };

/* The flags of a str. */
#define TEXT_KIND(flags) ((flags) >> 2 & 7u) /* bytes of a character */
#define TEXT_IS_COMPACT(flags) ((flags) >> 5 & 1u)
#define TEXT_IS_ASCII(flags) ((flags) >> 6 & 1u)

/* The first frame owner that is not Python code. */
#define OWNER_NATIVE 3

/* --- which interpreter is loaded ------------------------------------------------------------- */

static const struct {
	unsigned minor;
	struct python_layout layout;
} versions[] = {
	{ 8,
	  { PYTHON_LINES_3_8, .thread_frame = 24, .frame_back = 24, .frame_code = 32,
	    .frame_instruction = 104, .code_first_line = 40, .code_file = 104, .code_function = 112,
	    .code_lines = 120, .text_ascii = 48, .text_wide = 72 } },
	{ 10,
	  { PYTHON_LINES_3_10, .thread_frame = 24, .frame_back = 24, .frame_code = 32,
	    .frame_instruction = 96, .code_first_line = 40, .code_file = 104, .code_function = 112,
	    .code_lines = 120, .text_ascii = 48, .text_wide = 72 } },
	{ 11,
	  { PYTHON_LINES_3_11, .thread_frame = 56, .has_cframe = true, .cframe_frame = 8, .frame_back = 48,
	    .frame_code = 32, .frame_instruction = 56, .code_first_line = 72, .code_file = 112,
	    .code_function = 128, .code_lines = 136, .code_bytes = 184, .text_ascii = 48, .text_wide = 72 } },
	{ 12,
	  { PYTHON_LINES_3_11, .thread_frame = 56, .has_cframe = true, .cframe_frame = 0, .frame_back = 8,
	    .frame_code = 0, .frame_instruction = 56, .frame_owner = 70, .code_first_line = 68,
	    .code_file = 112, .code_function = 128, .code_lines = 136, .code_bytes = 192, .text_ascii = 40,
	    .text_wide = 56 } },
};

/* Of _Py_DebugOffsets. */
enum { PUBLISHED_VERSION = 1, PUBLISHED_IS_FREE_THREADED = 2 };

/* Where each version has them, in words from its beginning. The sizes of structures bound the offsets in
 * them. */
static const struct published {
	unsigned version;
	uint8_t thread_size, thread_frame;
	uint8_t frame_size, frame_back, frame_code, frame_instruction, frame_owner;
	uint8_t code_size, code_file, code_function, code_lines, code_first_line, code_bytes;
} published[] = {
	{ 0x30d, 19, 23, 28, 29, 30, 31, 33, 34, 35, 37, 38, 39, 43 },
	{ 0x30e, 22, 26, 31, 32, 33, 34, 36, 39, 40, 42, 43, 44, 48 },
};

static bool read_published(const uint64_t *words, struct python_layout *layout)
{
	const struct published *at = published, *end = published + sizeof(published) / sizeof(published[0]);

	if (memcmp(words, "xdebugpy", 8) != 0 || words[PUBLISHED_IS_FREE_THREADED])
		return false;
	while (at < end && at->version != words[PUBLISHED_VERSION] >> 16)
		at++;
	if (at == end)
		return false;

	const uint8_t fields[][2] = {
		{ at->thread_frame, at->thread_size },  { at->frame_back, at->frame_size },
		{ at->frame_code, at->frame_size },     { at->frame_instruction, at->frame_size },
		{ at->frame_owner, at->frame_size },    { at->code_file, at->code_size },
		{ at->code_function, at->code_size },   { at->code_lines, at->code_size },
		{ at->code_first_line, at->code_size }, { at->code_bytes, at->code_size },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (words[fields[i][0]] > words[fields[i][1]] || words[fields[i][1]] > 65536)
			return false;
	*layout = (struct python_layout){
		.lines = PYTHON_LINES_3_11,
		.thread_frame = (uint32_t)words[at->thread_frame],
		.frame_back = (uint32_t)words[at->frame_back],
		.frame_code = (uint32_t)words[at->frame_code],
		.frame_instruction = (uint32_t)words[at->frame_instruction],
		.frame_owner = (uint32_t)words[at->frame_owner],
		.code_first_line = (uint32_t)words[at->code_first_line],
		.code_file = (uint32_t)words[at->code_file],
		.code_function = (uint32_t)words[at->code_function],
		.code_lines = (uint32_t)words[at->code_lines],
		.code_bytes = (uint32_t)words[at->code_bytes],
		.text_ascii = 40,
		.text_wide = 56,
	};
	return true;
}

/* 0: before 3.8, or unknown. Py_Version exists since 3.11; before, the symbols that each version
 * has added tell. */
static unsigned minor_version(const struct dl_phdr_info *info)
{
	uintptr_t at = language_symbol(info, "Py_Version", STT_OBJECT);

	if (at)
		return *(const unsigned long *)at >> 24 == 3 ? *(const unsigned long *)at >> 16 & 255 : 0;
	if (language_symbol(info, "PyModule_AddObjectRef", STT_FUNC))
		return 10;
	/* 3.9's structures are those of 3.8. */
	return language_symbol(info, "PyCode_NewWithPosOnlyArgs", STT_FUNC) ? 8 : 0;
}

static bool find_layout(const struct dl_phdr_info *info, struct python_layout *layout)
{
	unsigned minor = minor_version(info);
	uintptr_t runtime = minor >= 13 ? language_symbol(info, "_PyRuntime", STT_OBJECT) : 0;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].minor == minor) {
			*layout = versions[i].layout;
			return true;
		}
	return runtime && read_published((const uint64_t *)runtime, layout);
}

/* A build for debugging has other structures. */
static bool is_debug_build(const struct dl_phdr_info *info)
{
	return language_symbol(info, "_Py_RefTotal", STT_OBJECT) ||
	       language_symbol(info, "_Py_GetRefTotal", STT_FUNC);
}

static uintptr_t find(const struct dl_phdr_info *info)
{
	uintptr_t thread_state = language_symbol(info, "PyGILState_GetThisThreadState", STT_FUNC);

	if (!thread_state)
		return 0;
	python.thread_state = (void *(*)(void))thread_state;
	python.code_type = language_symbol(info, "PyCode_Type", STT_OBJECT);
	python.text_type = language_symbol(info, "PyUnicode_Type", STT_OBJECT);
	python.bytes_type = language_symbol(info, "PyBytes_Type", STT_OBJECT);
	return python.code_type && python.text_type && python.bytes_type && !is_debug_build(info) &&
	                       find_layout(info, &python.layout)
	               ? thread_state
	               : 0;
}

/* --- its memory ------------------------------------------------------------------------------- */

static bool has_type(struct memory *memory, uintptr_t object, uintptr_t type)
{
	return object && memory_word(memory, object + OBJECT_TYPE) == type;
}

/* The text of a str as UTF-8, cut to `room` bytes between two characters. 0: it is empty, or no str. */
static size_t read_text(struct memory *memory, uintptr_t text, char *to, size_t room)
{
	uintptr_t length =
		has_type(memory, text, python.text_type) ? memory_word(memory, text + OBJECT_SIZE) : 0;
	uint32_t flags = 0;
	size_t size = 0;

	if (!length || !memory_read(memory, text + TEXT_FLAGS, &flags, sizeof(flags)) ||
	    !TEXT_IS_COMPACT(flags))
		return 0;
	if (TEXT_IS_ASCII(flags)) {
		size = length < room ? length : room;
		return memory_read(memory, text + python.layout.text_ascii, to, size) ? size : 0;
	}
	for (uintptr_t i = 0; i < length && size + 4 <= room; i++) {
		uint32_t c = 0;

		if (!memory_read(memory, text + python.layout.text_wide + i * TEXT_KIND(flags), &c,
		                 TEXT_KIND(flags)))
			return 0;
		size += text_put_character(to + size, c);
	}
	return size;
}

/* --- lines ------------------------------------------------------------------------------------- */

/* The bytes of a table of lines, one by one. */
struct bytes {
	struct memory *memory;
	uintptr_t at, end;
};

static bool bytes_begin(struct bytes *bytes, struct memory *memory, uintptr_t object)
{
	uintptr_t size;

	if (!has_type(memory, object, python.bytes_type))
		return false;
	size = memory_word(memory, object + OBJECT_SIZE);
	*bytes = (struct bytes){ memory, object + BYTES_FIRST, object + BYTES_FIRST + size };
	return size <= LINES_BYTES;
}

static unsigned next_byte(struct bytes *bytes)
{
	unsigned char byte = 0;

	if (bytes->at >= bytes->end || !memory_read(bytes->memory, bytes->at, &byte, 1))
		bytes->at = bytes->end;
	else
		bytes->at++;
	return byte;
}

/* co_lnotab of Python 3.6 (Objects/lnotab_notes.txt): pairs of a step in bytes and a signed step in lines. */
static uint32_t line_3_8(struct bytes *bytes, int64_t line, int64_t position)
{
	for (int64_t at = 0; bytes->at < bytes->end;) {
		at += next_byte(bytes);
		if (at > position)
			break;
		line += (int8_t)next_byte(bytes);
	}
	return (uint32_t)line;
}

/* co_linetable of 3.10: pairs of a length in bytes and a signed step in lines, which comes first; -128: no
 * line. */
static uint32_t line_3_10(struct bytes *bytes, int64_t line, int64_t position)
{
	for (int64_t at = 0; bytes->at < bytes->end;) {
		int64_t length = next_byte(bytes);
		int8_t step = (int8_t)next_byte(bytes);

		line += step == -128 ? 0 : step;
		at += length;
		if (position < at)
			return step == -128 ? 0 : (uint32_t)line;
	}
	return 0;
}

static uint32_t next_number(struct bytes *bytes)
{
	uint32_t number = 0, byte;
	unsigned shift = 0;

	do {
		byte = next_byte(bytes);
		number |= (byte & 63) << (shift & 31);
		shift += 6;
	} while (byte & 64 && bytes->at < bytes->end);
	return number;
}

static int32_t next_signed_number(struct bytes *bytes)
{
	uint32_t number = next_number(bytes);

	return number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

/* The location table of 3.11 (Objects/locations.md): entries of a byte with kind and length in code units,
 * and by its kind the step in lines and the columns. */
static uint32_t line_3_11(struct bytes *bytes, int64_t line, int64_t position)
{
	enum { SHORT_END = 10, ONE_LINE_END = 13, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };

	for (int64_t at = 0; bytes->at < bytes->end;) {
		unsigned head = next_byte(bytes), kind = head >> 3 & 15;

		if (kind < SHORT_END) {
			next_byte(bytes);
		} else if (kind < ONE_LINE_END) {
			line += kind - SHORT_END;
			next_byte(bytes);
			next_byte(bytes);
		} else if (kind != NO_LOCATION) {
			line += next_signed_number(bytes);
			for (int i = 0; kind == LONG && i < 3; i++)
				next_number(bytes);
		}
		at += 2 * ((head & 7) + 1);
		if (position < at)
			return kind == NO_LOCATION ? 0 : (uint32_t)line;
	}
	return 0;
}

/* --- frames ------------------------------------------------------------------------------------ */

/* 0: not known. */
static uint32_t line_of(struct memory *memory, uintptr_t frame, uintptr_t code)
{
	const struct python_layout *layout = &python.layout;
	int64_t position = (int64_t)memory_word(memory, frame + layout->frame_instruction);
	struct bytes bytes;
	int32_t first = 0;

	if (!bytes_begin(&bytes, memory, memory_word(memory, code + layout->code_lines)) ||
	    !memory_read(memory, code + layout->code_first_line, &first, sizeof(first)))
		return 0;
	switch (layout->lines) {
	case PYTHON_LINES_3_8: return line_3_8(&bytes, first, (int32_t)position);
	case PYTHON_LINES_3_10: return line_3_10(&bytes, first, 2ll * (int32_t)position);
	case PYTHON_LINES_3_11:
		return line_3_11(&bytes, first, position - (int64_t)(code + layout->code_bytes));
	}
	return 0;
}

/* A frame of native code has no place in a file, and is left out. */
static bool is_python_frame(struct memory *memory, uintptr_t frame)
{
	unsigned char owner = 0;

	return !python.layout.frame_owner ||
	       (memory_read(memory, frame + python.layout.frame_owner, &owner, 1) && owner < OWNER_NATIVE);
}

/* False: the stack is full, or what looks like a frame is none. */
static bool put_frame(struct call_stack *stack, uintptr_t frame)
{
	const struct python_layout *layout = &python.layout;
	struct memory *memory = stack->memory;
	/* Since 3.14 the lowest bits tell who owns the reference. */
	uintptr_t code = memory_word(memory, frame + layout->frame_code) & ~(uintptr_t)3;
	char file[CALL_FILE_BYTES], function[CALL_FUNCTION_BYTES];
	size_t file_size, function_size;

	if (!is_python_frame(memory, frame))
		return true;
	if (!has_type(memory, code, python.code_type))
		return false;
	file_size = read_text(memory, memory_word(memory, code + layout->code_file), file, sizeof(file));
	function_size = read_text(memory, memory_word(memory, code + layout->code_function), function,
	                          sizeof(function));
	return language_put_frame(stack, line_of(memory, frame, code), file, file_size, function,
	                          function_size);
}

/* Exactly one word must be the calling thread's pthread_t. */
static void find_state_thread(struct memory *memory, uintptr_t state)
{
	uint32_t found = 0, at = 0;

	for (uint32_t i = 1; i < STATE_WORDS_SEARCHED; i++)
		if (memory_word(memory, state + i * sizeof(uintptr_t)) == (uintptr_t)pthread_self()) {
			at = i * (uint32_t)sizeof(uintptr_t);
			found++;
		}
	if (found == 1)
		__atomic_store_n(&python.state_thread, at, __ATOMIC_RELAXED);
}

static uintptr_t thread_state(struct memory *memory)
{
	uintptr_t state = (uintptr_t)python.thread_state();

	if (state && !__atomic_load_n(&python.state_thread, __ATOMIC_RELAXED))
		find_state_thread(memory, state);
	return state;
}

/* A thread that is not Python's own may have given its state up, and another thread may have the memory. */
static bool is_own_state(struct memory *memory, uintptr_t state)
{
	uint32_t at = __atomic_load_n(&python.state_thread, __ATOMIC_RELAXED);

	return at && memory_word(memory, state + at) == (uintptr_t)pthread_self();
}

static void read_stack(struct call_stack *stack, uintptr_t state)
{
	const struct python_layout *layout = &python.layout;
	uintptr_t frame = memory_word(stack->memory, state + layout->thread_frame);

	if (stack->is_interrupted && !is_own_state(stack->memory, state))
		return;
	if (layout->has_cframe)
		frame = memory_word(stack->memory, frame + layout->cframe_frame);
	language_put_frames(stack, frame, layout->frame_back, put_frame);
}

const struct frame_reader frames_python = {
	read_stack, { "/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ", "<string>" }
};
const struct language language_python = { find, thread_state, &frames_python };
