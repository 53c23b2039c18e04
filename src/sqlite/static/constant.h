/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a few instructions: the constant that a function returns, and the address that an instruction
 * names. One file for each processor.
 */
#pragma once

#include <stdint.h>

struct static_object;

/* So many bytes are read of a function that returns a constant, and of what names one. */
#define CONSTANT_CODE_BYTES 32

/* Instructions begin at multiples of it. */
#if defined(__aarch64__)
#define CONSTANT_CODE_STEP 4
#else
#define CONSTANT_CODE_STEP 1
#endif

/* The number that the function returns, 0: it is not a function that does only that. */
uint32_t constant_returned(const struct static_object *object, uintptr_t function);

/* The same for an address. */
uintptr_t constant_address_returned(const struct static_object *object, uintptr_t function);

/* The address that the instruction at `at` puts into a register, 0: none. */
uintptr_t constant_named_at(uintptr_t at);

/* Where, from `from` on, an instruction may put an address into the register of the third argument
 * before a call through a pointer; `end`: nowhere. */
uintptr_t constant_next_passed(uintptr_t from, uintptr_t end);
