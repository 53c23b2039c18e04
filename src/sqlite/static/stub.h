/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stub takes the calls of a function whose first instructions give place to a jump.
 *
 *	entry:  jmp first                        first:   the address of `second` into a register
 *	back:   the rest of the function                  jmp wrapper
 *	                                         second:  the displaced instructions
 *	                                                  jmp back
 *
 * The wrapper calls `second` as the real function. An instruction is displaced only when all
 * that it does is known; what is not known is refused, never guessed. A displaced call pushes
 * the original return address and jumps, so return addresses never lie in a stub.
 *
 * The register that leads from the first part to the wrapper is one that a call may change.
 * No caller knows that its callee leaves it alone: each function of SQLite that is patched
 * calls others through pointers.
 *
 * One file for each processor; they only read code and make bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite/static/object.h"

#define STUB_BYTES_MAX 192
#define STUB_ROWS_MAX 24
#define STUB_JUMP_MAX 8
#define STUB_ALIGN 16

/* From `offset` of the stub on, the caller's frame is `cfa` bytes above the stack pointer. The
 * caller's frame pointer is `fp` bytes below that; 0: still in its register. */
struct stub_row {
	uint16_t offset;
	uint32_t cfa;
	uint32_t fp;
	bool is_signed; /* the return address is (aarch64) */
};

struct stub {
	uintptr_t at, back; /* where the jump is written, and where the second part continues */
	uintptr_t end;      /* of the function, as far as it is known */
	uint8_t jump[STUB_JUMP_MAX];
	size_t jump_size;
	uint8_t code[STUB_BYTES_MAX];
	size_t size, second; /* where the second part begins */
	struct stub_row rows[STUB_ROWS_MAX];
	size_t rows_count;
};

/* Makes the stub of the function at `entry` of `code`, for the address `address`. NULL, or why the
 * function is refused. */
const char *stub_make(struct stub *stub, const struct static_range *code, uintptr_t entry, uintptr_t address,
                      const void *wrapper);

/* The maximum distance of a stub from the code. */
extern const uintptr_t stub_reach;

/* The target of the library's jump at the beginning of the function; 0: there is none. */
uintptr_t stub_jump_target(uintptr_t function);

/* The function that this one calls, if it does nothing else; 0: it does more. Link-time
 * optimisation lets the program call it directly. `is_prepare`: only if it is called as
 * sqlite3_prepare_v2() calls sqlite3LockAndPrepare(). */
uintptr_t stub_only_call(const struct static_range *code, uintptr_t entry, bool is_prepare);
