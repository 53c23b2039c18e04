/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code whose unwind information is wrong. A trace ends there, truncated. The code is read when the
 * rule of an address is made, never when it is used.
 *
 * Assembly may push a register without a word in its unwind information: glibc's
 * multiplication of long numbers, which prints and reads floats, takes a saved register
 * for the return address then. Such a function begins with a push, and behind the push
 * the information still has the rule of the function's first instruction.
 *
 * An exception lands: libgcc's _Unwind_RaiseException() and its kin return into the
 * frame that catches. At the end they copy that frame's registers, the return address
 * among them, over what they saved in their own frame; some forty instructions later
 * they move the stack pointer. In between their unwind information leads to a frame
 * that was never the caller.
 *
 * Clang moves the `add $n,%rsp` or `sub $n,%rsp` with which both ways behind a conditional
 * jump begin in front of it (clang 14 and 15, Rust), and the unwind information still has it
 * behind: between the two, mostly a comparison, the frame is n bytes smaller or larger than it
 * says. There the rows before and behind the instruction are the same.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_DISTRUST_H
#define QUERYPROF_HANDLER_UNWIND_DISTRUST_H

#include <stdbool.h>

#include "handler/unwind/arch.h"

/* Whether the row may be wrong at `address`; it is of an exception's way, or has the CFA by the stack
 * pointer. Its function lies in code that can be read. */
bool distrust_row(const struct cfi_section *section, const struct cfi_row *row, uintptr_t address);

#endif
