/*
 * Functions in assembly that push registers and do not say so in their unwind
 * information (glibc's multiplication of long numbers, which prints and reads floats):
 * what that takes for the return address is a register of somebody's.
 *
 * Such a function is known by its first instruction: it pushes, and behind it the
 * unwind information still says what it said before. Then its instructions are read
 * from the first to the one in question, and tell what has been pushed.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_HANDWRITTEN_H
#define QUERYPROF_HANDLER_UNWIND_HANDWRITTEN_H

#include "handler/unwind/arch.h"

/* The rule at `address` of the row's function; `said` is what the row comes to.
 * Instructions are read within [code_start, code_end). */
rule_t handwritten_rule(const struct cfi_section *section, const struct cfi_row *row, rule_t said,
                        uintptr_t code_start, uintptr_t code_end, uintptr_t address);

#endif
