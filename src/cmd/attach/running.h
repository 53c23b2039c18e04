/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statement that a frame of sqlite3_step() executes, in a process whose thread is stopped.
 * sqlite3_step() needs its argument after each call that it makes, so a callee-saved register or its part of
 * the stack has the address. A candidate counts only if it is a member of the list of statements of a
 * connection that has a VFS. Nothing of the process is called or written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/attach/sqlite_code.h"
#include "cmd/attach/walk.h"

#define RUNNING_REGISTERS 6

/* The registers and the stack of a frame of sqlite3_step(). */
struct running_frame {
	uint64_t registers[RUNNING_REGISTERS]; /* rbx, rbp, r12 to r15, as they were in the frame; 0: not
	                                          known */
	uint64_t stack, stack_end;             /* its part of the stack; 0: not known */
};

/* Fills what is known at the frame; stack_end is the `stack` of the next frame. */
void running_frame_read(struct running_frame *frame, const struct walk *walk, Dwfl_Frame *from);

/* The address of the statement; 0: it is not known. */
uint64_t running_statement(const struct running_frame *frame, const struct sqlite_code *code,
                           const struct walk_start *start, pid_t process);

/* Its text, zero-terminated. Returns the size without the zero; 0: not known. *is_cut: the text is longer. */
size_t running_text(uint64_t statement, const struct sqlite_code *code, pid_t process, char *text,
                    size_t room, bool *is_cut);
