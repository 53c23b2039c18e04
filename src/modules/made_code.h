/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that queryprof has made in this process, as if it were an object's: snapshots have it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct made_code {
	uintptr_t start, end;
	uintptr_t unwinding, unwinding_end; /* .eh_frame_hdr, followed by .eh_frame */
};

#define MADE_CODE_MAX 8

/* The code stays for ever. False: there are too many. One thread at a time. */
bool made_code_add(const struct made_code *code);

/* All until now. */
size_t made_code_all(const struct made_code **codes);
