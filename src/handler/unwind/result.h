/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a walk, whether all of it was fast (unwind.h) or its end was slow (slow_walk.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct memo_frame;

/* It has two words, so that it is returned in registers. */
struct unwind_result {
	int16_t depth;       /* entries written, >= 1 unless max is 0 */
	bool truncated;      /* the bottom of the stack was not reached */
	uint32_t generation; /* of the code map used */
	/* Its frames as the memo has kept them, leaf first; NULL: it has none. */
	const struct memo_frame *frames;
};
