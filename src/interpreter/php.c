/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of PHP 7.4 to 8.4 without threads (NTS), whose only virtual machine runs on the main thread.
 *
 * A build with threads (ZTS) does not export executor_globals, so it has no call stacks.
 *
 * The head of a frame, of an instruction, of a function and of a class has been the same since 7.4.
 * Two offsets differ, and are found: that of the newest frame in executor_globals, and that of the
 * file in a function. They are accepted once they have led to the file and line that
 * zend_get_executed_filename_ex() and zend_get_executed_lineno() return. Both functions only load
 * fields of the newest frame.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/loaded_symbol.h"
#include "base/sys.h"
#include "interpreter/language.h"
#include "interpreter/memory.h"

#define GENERATORS_MAX 16
#define GENERATOR_BYTES_MAX 512

/* Offsets in bytes. */
enum {
	FRAME_INSTRUCTION = 0,
	FRAME_FUNCTION = 24,
	FRAME_THIS = 32, /* a zval: the value, then its type */
	FRAME_THIS_TYPE = 40,
	FRAME_BACK = 48,
	INSTRUCTION_LINE = 24,
	FUNCTION_TYPE = 0,
	FUNCTION_NAME = 8,
	FUNCTION_CLASS = 16,
	FUNCTION_FILE_FIRST = 48, /* the range in which the file is searched */
	FUNCTION_FILE_LAST = 256,
	CLASS_NAME = 8,
	TEXT_TYPE = 4,
	TEXT_SIZE = 16,
	TEXT_FIRST = 24,
	OBJECT_CLASS = 16,
	GENERATOR_FRAME = 56,
	GENERATOR_NODE_BYTES = 32, /* begins with its parent, before the frame that represents it */
};

enum { IS_STRING = 6, IS_OBJECT = 8 };
enum { INTERNAL_FUNCTION = 1, USER_FUNCTION = 2, EVAL_CODE = 4 };

/* What the loaded interpreter has. */
static struct {
	uintptr_t globals;
	size_t globals_size;
	uintptr_t generator_class; /* the pointer to the class */
	void *(*executed_file)(void);
	uint32_t (*executed_line)(void);
	uint32_t newest_frame, function_file; /* 0: not found yet. Of the main thread */
	uint32_t trials;
} php;

static uintptr_t find(const struct dl_phdr_info *info)
{
	const ElfW(Sym) *globals = loaded_symbol_find(info, "executor_globals", STT_OBJECT);
	uintptr_t file = language_symbol(info, "zend_get_executed_filename_ex", STT_FUNC);
	uintptr_t line = language_symbol(info, "zend_get_executed_lineno", STT_FUNC);

	if (!globals || !file || !line)
		return 0;
	php.globals = info->dlpi_addr + globals->st_value;
	php.globals_size = globals->st_size;
	php.generator_class = language_symbol(info, "zend_ce_generator", STT_OBJECT);
	php.executed_file = (void *(*)(void))file;
	php.executed_line = (uint32_t(*)(void))line;
	return file;
}

/* The characters of a zend_string up to a zero, which a class without a name contains, cut to
 * `room`. 0: it is empty, or no string. */
static size_t read_text(struct memory *memory, uintptr_t text, char *to, size_t room)
{
	uint32_t type = 0;
	size_t size = memory_word(memory, text + TEXT_SIZE);
	char end = 1;

	if (!text || !size || !memory_read(memory, text + TEXT_TYPE, &type, sizeof(type)) ||
	    (type & 15) != IS_STRING || !memory_read(memory, text + TEXT_FIRST + size, &end, 1) || end)
		return 0;
	size = size < room ? size : room;
	return memory_read(memory, text + TEXT_FIRST, to, size) ? strnlen(to, size) : 0;
}

/* 0: there is no such code, or it is not code. */
static unsigned function_type(struct memory *memory, uintptr_t function)
{
	unsigned char type = 0;

	return function && memory_read(memory, function + FUNCTION_TYPE, &type, 1) ? type : 0;
}

static bool is_user_code(unsigned type)
{
	return type == USER_FUNCTION || type == EVAL_CODE;
}

/* 0: not known. While an exception is handled, the instruction is one of executor_globals. */
static uint32_t line_of(struct memory *memory, uintptr_t frame)
{
	uintptr_t instruction = memory_word(memory, frame + FRAME_INSTRUCTION);
	uint32_t line = 0;

	if (!instruction || instruction - php.globals < php.globals_size ||
	    !memory_read(memory, instruction + INSTRUCTION_LINE, &line, sizeof(line)))
		return 0;
	return line;
}

/* --- the two offsets ---------------------------------------------------------------------------- */

/* The offset of the file in the function of the newest frame of user code, at or before `frame`;
 * 0: there is none, or the frame is at another line, or is no frame. */
static uint32_t find_file(struct memory *memory, uintptr_t frame, uintptr_t file, uint32_t line)
{
	uintptr_t function = 0;
	unsigned type = 0;

	for (int walked = 0; frame && walked < LANGUAGE_FRAMES_WALKED_MAX; walked++) {
		function = memory_word(memory, frame + FRAME_FUNCTION);
		type = function_type(memory, function);
		if (function && type != INTERNAL_FUNCTION)
			break;
		frame = memory_word(memory, frame + FRAME_BACK);
	}
	if (!frame || !is_user_code(type) || line_of(memory, frame) != line)
		return 0;
	for (uint32_t at = FUNCTION_FILE_FIRST; at <= FUNCTION_FILE_LAST; at += sizeof(uintptr_t))
		if (memory_word(memory, function + at) == file)
			return at;
	return 0;
}

/* Whether the offsets are known. Exactly one word of executor_globals must lead to the file and line. */
static bool find_offsets(struct memory *memory)
{
	uint32_t newest = 0, file_at = 0;
	uintptr_t file;
	uint32_t line;
	int found = 0;

	if (php.newest_frame)
		return true;
	if (!language_tries(&php.trials))
		return false;
	file = (uintptr_t)php.executed_file();
	line = php.executed_line();
	if (!file || !line)
		return false;
	for (uint32_t at = 0; at + sizeof(uintptr_t) <= php.globals_size; at += sizeof(uintptr_t)) {
		uint32_t file_of = find_file(memory, memory_word(memory, php.globals + at), file, line);

		if (file_of) {
			newest = at;
			file_at = file_of;
			found++;
		}
	}
	if (found != 1)
		return false;
	php.newest_frame = newest;
	php.function_file = file_at;
	return true;
}

/* --- frames ------------------------------------------------------------------------------------- */

/* Class::function; code outside of functions is {main}, as in PHP's own traces. */
static size_t read_function(struct memory *memory, uintptr_t function, char to[CALL_FUNCTION_BYTES])
{
	uintptr_t name = memory_word(memory, function + FUNCTION_NAME);
	uintptr_t class = memory_word(memory, function + FUNCTION_CLASS);
	size_t size = 0;

	if (!name) {
		memcpy(to, "{main}", sizeof("{main}"));
		return 6;
	}
	if (class)
		size = read_text(memory, memory_word(memory, class + CLASS_NAME), to,
		                 CALL_FUNCTION_BYTES - sizeof("::"));
	if (size) {
		memcpy(to + size, "::", sizeof("::"));
		size += 2;
	}
	return size + read_text(memory, name, to + size, CALL_FUNCTION_BYTES - size);
}

/* False: the stack is full, or what looks like a frame is none. An internal function has no place in a file,
 * and is left out. */
static bool put_frame(struct call_stack *stack, uintptr_t frame)
{
	struct memory *memory = stack->memory;
	uintptr_t function = memory_word(memory, frame + FRAME_FUNCTION);
	unsigned type = function_type(memory, function);
	char file[CALL_FILE_BYTES], name[CALL_FUNCTION_BYTES];
	size_t file_size;

	if (!function || type == INTERNAL_FUNCTION)
		return true;
	if (!is_user_code(type))
		return false;
	file_size = read_text(memory, memory_word(memory, function + php.function_file), file, sizeof(file));
	if (!file_size)
		return false;
	return language_put_frame(stack, line_of(memory, frame), file, file_size, name,
	                          read_function(memory, function, name));
}

static bool is_generator(struct memory *memory, uintptr_t object)
{
	return object && php.generator_class &&
	       memory_word(memory, object + OBJECT_CLASS) == memory_word(memory, php.generator_class);
}

/* The generator that the frame represents, instead of all that delegate (yield from) to the
 * running one; 0: none. */
static uintptr_t delegating(struct memory *memory, uintptr_t frame)
{
	uintptr_t object = memory_word(memory, frame + FRAME_THIS);
	unsigned char type = 0;

	return !memory_word(memory, frame + FRAME_FUNCTION) &&
	                       memory_read(memory, frame + FRAME_THIS_TYPE, &type, 1) && type == IS_OBJECT &&
	                       is_generator(memory, object)
	               ? object
	               : 0;
}

/* The frames of generators that delegate, from the oldest, which is given, up to that below the one that runs
 * and that was written. False: they are not understood, so the stack ends there. */
static bool put_delegating(struct call_stack *stack, uintptr_t frame, uintptr_t generator)
{
	struct memory *memory = stack->memory;
	uintptr_t parent_at = frame - generator - GENERATOR_NODE_BYTES;
	uintptr_t frames[GENERATORS_MAX], parent;
	int count = 0;

	/* One that has delegated has a parent. Older versions have a longer node, so none is found. */
	if (parent_at > GENERATOR_BYTES_MAX || !memory_word(memory, generator + parent_at))
		return false;
	for (; (parent = memory_word(memory, generator + parent_at)); generator = parent) {
		if (!is_generator(memory, parent) || count == GENERATORS_MAX)
			return false;
		frames[count] = memory_word(memory, generator + GENERATOR_FRAME);
		if (!is_user_code(function_type(memory, memory_word(memory, frames[count] + FRAME_FUNCTION))))
			return false;
		count++;
	}
	while (count)
		if (!put_frame(stack, frames[--count]))
			return false;
	return true;
}

/* executor_globals are the main thread's. */
static bool is_main_thread(void)
{
	uint32_t thread = sys_gettid();

	return thread != UINT32_MAX && thread == (uint32_t)getpid();
}

static bool put_frame_or_generators(struct call_stack *stack, uintptr_t frame)
{
	uintptr_t generator = delegating(stack->memory, frame);

	return generator ? put_delegating(stack, frame, generator) : put_frame(stack, frame);
}

static uintptr_t thread_globals(struct memory *memory)
{
	return is_main_thread() && find_offsets(memory) ? php.globals : 0;
}

static void read_stack(struct call_stack *stack, uintptr_t globals)
{
	language_put_frames(stack, memory_word(stack->memory, globals + php.newest_frame), FRAME_BACK,
	                    put_frame_or_generators);
}

const struct frame_reader frames_php = { read_stack, { "/vendor/", "/usr/share/php/" } };
const struct language language_php = { find, thread_globals, &frames_php };
