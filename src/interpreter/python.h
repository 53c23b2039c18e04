/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of CPython 3.8 to 3.13, by the offsets of its structures. 3.13 publishes them (_Py_DebugOffsets);
 * before, they are those of Include/cpython/ and Include/internal/ of each minor version, which never change
 * within one.
 */
#ifndef QUERYPROF_INTERPRETER_PYTHON_H
#define QUERYPROF_INTERPRETER_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/call_frame.h"

/* How a version keeps the position in a code object, and its lines. */
enum python_lines {
	PYTHON_LINES_3_8,  /* offset of the last instruction; PEP 3.6's co_lnotab */
	PYTHON_LINES_3_10, /* its number; PEP 626's co_linetable of 3.10 */
	PYTHON_LINES_3_11, /* its address; the location table of 3.11 */
};

/* Offsets in bytes. */
struct python_layout {
	enum python_lines lines;
	uint32_t thread_frame; /* of a thread state: its newest frame, or what has it */
	uint32_t cframe_frame; /* of that */
	bool has_cframe;
	uint32_t frame_back, frame_code, frame_instruction;
	uint32_t frame_owner; /* 0: all frames are Python's */
	uint32_t code_first_line, code_file, code_function, code_lines, code_bytes;
	uint32_t text_ascii, text_wide; /* of a str: its characters, if all are ASCII, and else */
};

/* What the loaded interpreter has. */
struct python {
	struct python_layout layout;
	void *(*thread_state)(void); /* PyGILState_GetThisThreadState(): a thread-local word, no lock */
	uintptr_t code_type, text_type, bytes_type;
	unsigned long long unloads; /* objects that had been unloaded by then */
};

/* Looks for an interpreter among the loaded objects. False: there is none that is understood. */
bool python_find(struct python *python);

/* Whether no object was unloaded since. */
bool python_is_loaded(const struct python *python);

/* call_stack_read() for it. */
size_t python_call_stack(const struct python *python, char to[CALL_STACK_BYTES]);

#endif
