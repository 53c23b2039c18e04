/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code whose unwind information is wrong. A stack ends there, truncated. The code is read when the
 * rule of an address is made, never when it is used.
 *
 * Assembly may push a register without unwind information: in glibc's multiplication of long numbers,
 * which prints and reads floats, a saved register then seems to be the return address. Such a
 * function begins with a push, and after the push the information still has the rule of the
 * function's first instruction.
 *
 * An exception lands: libgcc's _Unwind_RaiseException() and related functions return into the frame
 * that catches. At the end they copy that frame's registers, including the return address, over those
 * saved in their own frame; some forty instructions later they move the stack pointer. In between
 * their unwind information leads to a frame that was never the caller.
 *
 * Clang moves the `add $n,%rsp` or `sub $n,%rsp` with which both branches after a conditional jump
 * begin in front of the jump (clang 14 and 15, Rust), but the unwind information still has it after
 * the jump: between the two, usually at a comparison, the frame is n bytes smaller or larger than the
 * information. There the rows before and after the instruction are the same.
 */
#pragma once

#include <stdbool.h>

#include "handler/unwind/arch.h"

/* Whether the row may be wrong at `address`; it belongs to an exception's path, or has the CFA by
 * the stack pointer. Its function is in readable code. */
bool distrust_row(const struct cfi_section *section, const struct cfi_row *row, uintptr_t address);
