/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A language whose frames are understood: one file each, and an entry in the table of call_stack.c.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpreter/memory.h"
#include "wire/call_frame.h"

/* A loop in damaged memory ends. */
#define LANGUAGE_FRAMES_WALKED_MAX 256

/* A call stack that is written. */
struct call_stack {
	const struct frame_reader *reader;
	struct memory *memory;
	char *bytes; /* CALL_STACK_BYTES, of which are written: */
	size_t size;
	unsigned frames;
	uint16_t at[CALL_FRAMES_MAX]; /* where each frame begins */
	bool has_application;         /* one of them belongs to no library */
	bool is_cut;                  /* frames of libraries were left out */
	bool is_interrupted;          /* a signal handler reads, so none are left out to find older ones */
};

/* The part that only reads memory. */
struct frame_reader {
	/* Puts the frames of a thread, which struct language finds, newest first. */
	void (*read)(struct call_stack *stack, uintptr_t thread);

	/* What the names of files contain that belong to libraries or to the language itself; NULL ends them.
	 */
	const char *library_files[8];
};

struct language {
	/* Searches one loaded object for the interpreter, inside loader_each(), and keeps what
	 * read() needs; one thread at a time. Returns an address of the interpreter's code; 0: it
	 * is not there, or not understood. Not called again after success. */
	uintptr_t (*find)(const struct dl_phdr_info *info);

	/* The address of what an interpreter that was found and is still loaded knows of the calling thread;
	 * 0: nothing now, or it is not understood. */
	uintptr_t (*thread)(struct memory *memory);

	/* Of that thread, which calls. */
	const struct frame_reader *frames;
};

extern const struct language language_python;
extern const struct language language_node;
extern const struct language language_perl;
extern const struct language language_php;
extern const struct language language_ruby;

/* The readers that work wherever the interpreter is interrupted, even after it was unloaded (interrupted.c).
 */
extern const struct frame_reader frames_python;
extern const struct frame_reader frames_perl;
extern const struct frame_reader frames_php;
extern const struct frame_reader frames_ruby;

/* The address of an exported symbol of the object; 0: it exports none of that name and type (STT_…). */
uintptr_t language_symbol(const struct dl_phdr_info *info, const char *name, unsigned type);

/* What could not be told apart at one call may be at another: the 1st, 2nd, 4th, … call tries. */
bool language_tries(uint32_t *calls);

/* Puts the frames from the newest on; a frame has the next older one at the offset `back`. put() writes what
 * belongs to a frame, or nothing; false: the stack ends there. */
void language_put_frames(struct call_stack *stack, uintptr_t newest, uint32_t back,
                         bool (*put)(struct call_stack *stack, uintptr_t frame));

/* Puts a frame. Texts without terminators are cut after a whole character. False: the stack is full. If only
 * frames of libraries fill it, it is not full yet: the oldest of them give way to the application's newest
 * frame, and a frame without a file marks the gap. */
bool language_put_frame(struct call_stack *stack, uint32_t line, const char *file, size_t file_size,
                        const char *function, size_t function_size);
