/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Perl 5.32 to 5.42 with threads (ithreads), whose interpreter is a structure of its
 * thread. Nothing of Perl is called: pthread_getspecific() returns the interpreter, and the rest is
 * read.
 *
 * Without threads Perl has no PL_thr_key, so it has no call stacks.
 *
 * The structures of contexts, instructions and names are those of Perl's public headers. The
 * positions of the newest instruction and of the context stack in the interpreter are found: one word
 * leads to a nextstate instruction, and one to a stack that the previous word names, too. Each
 * context must lead to such an instruction, and each sub must have a sub's type, so a stack ends in a
 * build with other structures.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/loaded_symbol.h"
#include "base/text.h"
#include "handler/unwind/stack_copy.h"
#include "interpreter/language.h"
#include "interpreter/memory.h"

#define CONTEXTS_WALKED_MAX 4096
#define INTERPRETER_WORDS 64   /* those that are searched */
#define INTERPRETER_BYTES 8192 /* contains PL_compiling */
#define CONTEXT_BYTES 104
#define NAME_BYTES_MAX 4096

/* Offsets in bytes. */
enum {
	COP_CODE = 16, /* the function that executes it */
	COP_LINE = 36,
	COP_FILE = 48,
	STACK_ARRAY = 0,
	STACK_CONTEXTS = 8,
	STACK_BACK = 16,
	STACK_NEWEST = 32,
	STACK_MAX = 36,
	STACK_TYPE = 44,
	CONTEXT_TYPE = 0,
	CONTEXT_COP = 16, /* of the caller */
	CONTEXT_SUB = 72,
	VALUE_BODY = 0,
	VALUE_FLAGS = 12,
	VALUE_ARRAY = 16,
	SUB_PACKAGE = 32, /* of the bodies */
	SUB_NAME = 56,
	SUB_FLAGS = 92,
	GLOB_NAME = 32,
	GLOB_PACKAGE = 40,
	PACKAGE_MAX = 24,
	PACKAGE_BYTES = 32,
	NAMES_COUNT = 28, /* of a package's data in addition to a hash; begins with the name */
	NAME_SIZE = 4,
	NAME_FIRST = 8,
};

enum { TYPE_GLOB = 9, TYPE_PACKAGE = 12, TYPE_SUB = 13, TYPE_FORMAT = 14 }; /* the low byte of flags */
enum { CONTEXT_IS_SUB = 9, CONTEXT_IS_FORMAT = 10, CONTEXT_IS_EVAL = 11, CONTEXT_LAST = 13 };
enum { CONTEXT_TYPES = 15, EVAL_IS_BLOCK = 0x40, SUB_IS_FAKE = 0x80 };
enum { SUB_HAS_NAME = 0x8000, SUB_IS_LEXICAL = 0x10000 };
enum { STACK_MAIN = 1, STACK_TYPE_LAST = 16 };

/* What the loaded interpreter has. */
static struct {
	const pthread_key_t *key;
	uintptr_t nextstate, dbstate;
	bool packages_have_bodies; /* since 5.36: the name follows the hash's body, not its array */
	uint32_t offsets; /* atomic; of the newest instruction and, shifted, of the stack; 0: not found */
	uint32_t trials;  /* atomic */
} perl;

/* The function that executes the instruction of that name; 0: not found. Since 5.38 the functions themselves
 * are not exported. */
static uintptr_t find_code(const struct dl_phdr_info *info, const char *name)
{
	const ElfW(Sym) *names = loaded_symbol_find(info, "PL_op_name", STT_OBJECT);
	const ElfW(Sym) *code = loaded_symbol_find(info, "PL_ppaddr", STT_OBJECT);
	const char *const *at;
	char text[sizeof("nextstate") + 1];
	size_t size;

	if (!names || !code)
		return 0;
	at = (const char *const *)(info->dlpi_addr + names->st_value);
	for (size_t i = 0; i < names->st_size / sizeof(*at) && i < code->st_size / sizeof(uintptr_t); i++)
		if (at[i] && stack_copy_text(at[i], text, sizeof(text), &size) && size == strlen(name) &&
		    !memcmp(text, name, size))
			return ((const uintptr_t *)(info->dlpi_addr + code->st_value))[i];
	return 0;
}

static uintptr_t find(const struct dl_phdr_info *info)
{
	uintptr_t key = language_symbol(info, "PL_thr_key", STT_OBJECT);
	uintptr_t revision = language_symbol(info, "PL_revision", STT_OBJECT);
	uintptr_t version = language_symbol(info, "PL_version", STT_OBJECT);
	unsigned minor;

	if (!key || !revision || !version || *(const unsigned char *)revision != 5)
		return 0;
	minor = *(const unsigned char *)version;
	if (minor < 32 || minor > 42 || minor % 2)
		return 0;
	perl.key = (const pthread_key_t *)key;
	perl.nextstate = find_code(info, "nextstate");
	perl.dbstate = find_code(info, "dbstate");
	perl.packages_have_bodies = minor >= 36;
	return perl.nextstate && perl.dbstate ? key : 0;
}

/* A page each for the stack, for instructions, and for values and texts. */
struct reader {
	uintptr_t interpreter;
	struct memory *memory;
};

static uint32_t number_at(struct memory *memory, uintptr_t at)
{
	uint32_t number;

	return memory_read(memory, at, &number, sizeof(number)) ? number : 0;
}

/* --- where the interpreter has what is looked for ------------------------------------------------ */

static bool is_statement(struct reader *reader, uintptr_t cop)
{
	uintptr_t code =
		cop && cop % sizeof(uintptr_t) == 0 ? memory_word(reader->memory, cop + COP_CODE) : 0;

	return code && (code == perl.nextstate || code == perl.dbstate);
}

/* While code is compiled, the statement is PL_compiling, which is never executed. */
static bool is_cop(struct reader *reader, uintptr_t cop)
{
	return cop - reader->interpreter < INTERPRETER_BYTES || is_statement(reader, cop);
}

/* Whether it is the end of a chain of stacks that ends with the main one. */
static bool is_stack(struct reader *reader, uintptr_t stack, uintptr_t array)
{
	for (int walked = 0; stack && walked < CONTEXTS_WALKED_MAX; walked++) {
		int32_t newest = (int32_t)number_at(reader->memory, stack + STACK_NEWEST);
		uint32_t type = number_at(reader->memory, stack + STACK_TYPE);

		if (!array || memory_word(reader->memory, stack + STACK_ARRAY) != array || newest < -1 ||
		    newest > (int32_t)number_at(reader->memory, stack + STACK_MAX) || !type ||
		    type > STACK_TYPE_LAST)
			return false;
		if (type == STACK_MAIN)
			return true;
		stack = memory_word(reader->memory, stack + STACK_BACK);
		array = memory_word(reader->memory, stack + STACK_ARRAY);
	}
	return false;
}

/* Exactly one word each must lead to them. */
static uint32_t find_offsets(struct reader *reader)
{
	uint32_t offsets = __atomic_load_n(&perl.offsets, __ATOMIC_RELAXED);
	uint32_t cop = 0, stack = 0, cops = 0, stacks = 0;
	uintptr_t words[INTERPRETER_WORDS];

	if (offsets)
		return offsets;
	if (!language_tries(&perl.trials) ||
	    !memory_read(reader->memory, reader->interpreter, words, sizeof(words)))
		return 0;
	for (uint32_t i = 1; i < INTERPRETER_WORDS; i++) {
		if (is_statement(reader, words[i])) {
			cop = i * (uint32_t)sizeof(uintptr_t);
			cops++;
		}
		if (is_stack(reader, words[i], words[i - 1])) {
			stack = i * (uint32_t)sizeof(uintptr_t);
			stacks++;
		}
	}
	if (cops != 1 || stacks != 1)
		return 0;
	offsets = cop | stack << 16;
	__atomic_store_n(&perl.offsets, offsets, __ATOMIC_RELAXED);
	return offsets;
}

/* --- names --------------------------------------------------------------------------------------- */

static bool has_type(struct reader *reader, uintptr_t value, unsigned type)
{
	return value && (number_at(reader->memory, value + VALUE_FLAGS) & 255) == type;
}

/* The name as UTF-8, cut to `room`. The byte after its zero shows whether it is already UTF-8;
 * otherwise it is Latin-1. 0: it is no name. */
static size_t read_name(struct reader *reader, uintptr_t name, char *to, size_t room)
{
	uint32_t length = name ? number_at(reader->memory, name + NAME_SIZE) : 0;
	unsigned char end[2] = { 1, 0 }, byte;
	size_t size = 0;

	if (!length || length > NAME_BYTES_MAX ||
	    !memory_read(reader->memory, name + NAME_FIRST + length, end, sizeof(end)) || end[0])
		return 0;
	for (uint32_t i = 0; i < length && size + 2 <= room; i++) {
		if (!memory_read(reader->memory, name + NAME_FIRST + i, &byte, 1))
			return 0;
		if (end[1] & 1)
			to[size++] = (char)byte;
		else
			size += text_put_character(to + size, byte);
	}
	return size;
}

static size_t read_package(struct reader *reader, uintptr_t package, char *to, size_t room)
{
	uintptr_t body, more, name;

	if (!has_type(reader, package, TYPE_PACKAGE))
		return 0;
	body = memory_word(reader->memory, package + VALUE_BODY);
	more = perl.packages_have_bodies
	               ? body + PACKAGE_BYTES
	               : memory_word(reader->memory, package + VALUE_ARRAY) +
	                         (memory_word(reader->memory, body + PACKAGE_MAX) + 1) * sizeof(uintptr_t);
	name = memory_word(reader->memory, more);
	if (number_at(reader->memory, more + NAMES_COUNT))
		name = memory_word(reader->memory, name);
	return read_name(reader, name, to, room);
}

/* Package::sub, as caller() returns it; 0: it has no name any more. */
static size_t read_function(struct reader *reader, uintptr_t sub, char to[CALL_FUNCTION_BYTES])
{
	uintptr_t body = memory_word(reader->memory, sub + VALUE_BODY);
	uintptr_t name = memory_word(reader->memory, body + SUB_NAME);
	uintptr_t package = memory_word(reader->memory, body + SUB_PACKAGE);
	uint32_t flags = number_at(reader->memory, body + SUB_FLAGS);
	size_t size = 0, added;

	if (!(flags & SUB_HAS_NAME)) {
		if (!has_type(reader, name, TYPE_GLOB))
			return 0;
		body = memory_word(reader->memory, name + VALUE_BODY);
		name = memory_word(reader->memory, body + GLOB_NAME);
		package = memory_word(reader->memory, body + GLOB_PACKAGE);
	}
	if (!(flags & SUB_IS_LEXICAL) || !(flags & SUB_HAS_NAME))
		size = read_package(reader, package, to, CALL_FUNCTION_BYTES - sizeof("::"));
	if (size) {
		memcpy(to + size, "::", sizeof("::"));
		size += 2;
	}
	added = read_name(reader, name, to + size, CALL_FUNCTION_BYTES - size);
	return added ? size + added : 0;
}

/* --- frames -------------------------------------------------------------------------------------- */

struct walk {
	struct reader *reader;
	struct call_stack *stack;
	uintptr_t cop; /* where the next frame is */
};

/* False: the stack is full, or has no place. */
static bool put_frame(struct walk *walk, const char *function, size_t function_size)
{
	struct memory *memory = walk->stack->memory;
	uintptr_t text = memory_word(memory, walk->cop + COP_FILE);
	char file[CALL_FILE_BYTES];
	size_t file_size;

	return text && stack_copy_text((const char *)text, file, sizeof(file), &file_size) && file_size &&
	       language_put_frame(walk->stack, number_at(memory, walk->cop + COP_LINE), file, file_size,
	                          function, function_size);
}

/* A frame begins at a sub, a format, and what a text or a file is compiled to, and not at eval {}. False:
 * the stack ends here, or is not understood. */
static bool put_context(struct walk *walk, uintptr_t context)
{
	struct reader *reader = walk->reader;
	unsigned char type = 0;
	char name[CALL_FUNCTION_BYTES];
	uintptr_t cop, sub;
	size_t size;
	bool is_eval;

	if (!memory_read(reader->memory, context + CONTEXT_TYPE, &type, 1) ||
	    (type & CONTEXT_TYPES) > CONTEXT_LAST)
		return false;
	is_eval = (type & CONTEXT_TYPES) == CONTEXT_IS_EVAL;
	if (is_eval ? type & EVAL_IS_BLOCK
	            : ((type & CONTEXT_TYPES) != CONTEXT_IS_SUB || type & SUB_IS_FAKE) &&
	                      (type & CONTEXT_TYPES) != CONTEXT_IS_FORMAT)
		return true;
	cop = memory_word(reader->memory, context + CONTEXT_COP);
	if (!is_cop(reader, cop))
		return false;
	if (is_eval) {
		memcpy(name, "(eval)", size = 6);
	} else {
		sub = memory_word(reader->memory, context + CONTEXT_SUB);
		if (!has_type(reader, sub, TYPE_SUB) && !has_type(reader, sub, TYPE_FORMAT))
			return false;
		size = read_function(reader, sub, name);
		if (!size)
			memcpy(name, "(unknown)", size = 9);
	}
	if (!put_frame(walk, name, size))
		return false;
	walk->cop = cop;
	return true;
}

static void put_stacks(struct walk *walk, uintptr_t stack)
{
	struct reader *reader = walk->reader;
	int walked = 0;

	for (; stack && walked++ < CONTEXTS_WALKED_MAX;
	     stack = memory_word(reader->memory, stack + STACK_BACK)) {
		uintptr_t contexts = memory_word(reader->memory, stack + STACK_CONTEXTS);
		int32_t newest = (int32_t)number_at(reader->memory, stack + STACK_NEWEST);
		bool is_main = number_at(reader->memory, stack + STACK_TYPE) == STACK_MAIN;

		for (int32_t i = newest; i >= 0; i--)
			if (walked++ == CONTEXTS_WALKED_MAX ||
			    !put_context(walk, contexts + (uintptr_t)i * CONTEXT_BYTES))
				return;
		if (is_main) {
			put_frame(walk, "(main)", 6);
			return;
		}
	}
}

static uintptr_t thread_interpreter(struct memory *memory)
{
	struct reader reader = { (uintptr_t)pthread_getspecific(*perl.key), memory };

	return reader.interpreter && find_offsets(&reader) ? reader.interpreter : 0;
}

static void read_stack(struct call_stack *stack, uintptr_t interpreter)
{
	struct reader reader = { interpreter, stack->memory };
	struct walk walk = { &reader, stack, 0 };
	uint32_t offsets = __atomic_load_n(&perl.offsets, __ATOMIC_RELAXED);

	walk.cop = memory_word(reader.memory, reader.interpreter + (offsets & 0xffff));
	if (is_cop(&reader, walk.cop))
		put_stacks(&walk, memory_word(reader.memory, reader.interpreter + (offsets >> 16)));
}

const struct frame_reader frames_perl = { read_stack,
	                                  { "/usr/share/perl", "/perl5/", "/perl/5.", "/perl-base/" } };
const struct language language_perl = { find, thread_interpreter, &frames_perl };
