/*
 * Functions that return into another frame than their caller's: libgcc's
 * _Unwind_RaiseException, _Unwind_Resume and their like, at whose end an exception
 * lands in the frame that catches it.
 *
 * On the way there libgcc writes the registers of that frame over those that it saved
 * in its own, its return address among them, some forty instructions before it moves
 * the stack pointer. Its unwind information does not say so: what it leads to is
 * neither the caller nor where the exception lands. But the code is known, and at a
 * fixed place of its frame is all about the frame that it is about to enter. So
 * from the call that begins to overwrite, the trace goes on where the exception
 * lands, as it will be.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_LANDING_H
#define QUERYPROF_HANDLER_UNWIND_LANDING_H

#include "handler/unwind/arch.h"

/* The rule at `address` of a function whose row says `eh_return`. Instructions are read
 * within [code_start, code_end). */
rule_t landing_rule(const struct cfi_section *section, const struct cfi_row *row, uintptr_t code_start,
                    uintptr_t code_end, uintptr_t address);

#endif
