/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A language whose frames are understood: a file each, and an entry in the table of call_stack.c.
 */
#ifndef QUERYPROF_INTERPRETER_LANGUAGE_H
#define QUERYPROF_INTERPRETER_LANGUAGE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "interpreter/memory.h"
#include "wire/call_frame.h"

struct language {
	/* Looks for the interpreter in one loaded object, inside loader_each(), and keeps what read() needs
	 * of it; one thread at a time. Returns an address of the interpreter's code; 0: it is not there, or
	 * not understood. Once it was found it is not called again. */
	uintptr_t (*find)(const struct dl_phdr_info *info);

	/* call_stack_read() with memory that was opened for it, of an interpreter that was found and is still
	 * loaded. */
	size_t (*read)(struct memory *memory, char to[CALL_STACK_BYTES]);
};

extern const struct language language_python;
extern const struct language language_perl;
extern const struct language language_php;

/* The address of what the object defines for others; 0: it defines none of that name and type (STT_…). */
uintptr_t language_symbol(const struct dl_phdr_info *info, const char *name, unsigned type);

/* Writes a frame at `to`, which has `room` bytes. Texts without terminators are cut after a whole character.
 * Returns its bytes; 0: there is no room. */
size_t language_put_frame(char *to, size_t room, uint32_t line, const char *file, size_t file_size,
                          const char *function, size_t function_size);

#endif
