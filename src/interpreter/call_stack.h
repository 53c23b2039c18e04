/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the application called SQLite, in the application's own language: file, line and function of
 * its frames.
 *
 * A call's stack is the same at its end as at its beginning. So the thread reads its own frames after a
 * call, in ordinary code, and only after a call that is worth it. They are read as memory, each read
 * checked (handler/unwind/stack_copy.h), because the interpreter's lock may not be held. No reference is
 * taken, and nothing is called that allocates, locks or can fail (docs/host-contract.md lists the calls).
 *
 * The program's own code, between rows and statements, has no such moment. Its samples read the frames
 * where they interrupt it (handler/outside.h): of a thread whose frames a call found before, and in
 * languages whose frames are memory alone. Nothing is called, and one thread reads at a time; the sample of
 * another has no frames. An interpreter may note its line later than it executes it: the newest frame's line
 * is the one that the interpreter would print.
 *
 * An unknown interpreter has no call stacks: nothing is guessed.
 */
#pragma once

#include <stddef.h>

#include "wire/call_frame.h"

/* The calling thread's frames of an interpreter, in the form of wire/call_frame.h, newest first.
 * Returns their size in bytes, at most CALL_STACK_BYTES; 0: there are none, or they are not
 * understood. */
size_t call_stack_read(char to[CALL_STACK_BYTES]);

/* Finds the interpreter of the calling thread, which has got its slot in a call, for samples of the program's
 * own code. Otherwise they have no frames before a call stack is read. Nothing unless they are taken
 * (handler/outside.h). */
void call_stack_find(void);
