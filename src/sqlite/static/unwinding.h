/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind information for stubs, as an object has it for its functions: then the signal handler
 * needs to know nothing of stubs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sqlite/static/stub.h"

/* A stub, and where its first byte is. */
struct placed_stub {
	struct stub stub;
	uintptr_t address;
};

/* Writes .eh_frame_hdr, followed by .eh_frame of the stubs, which are ordered by address, for the
 * address `address`. Returns the header's size, `*size` is that of all; 0: no space. */
size_t unwinding_write(uint8_t *to, size_t room, uintptr_t address, const struct placed_stub *stubs,
                       size_t count, size_t *size);
