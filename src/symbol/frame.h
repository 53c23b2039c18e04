/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function at an address.
 */
#pragma once

#include <stdbool.h>

/* One function at an address: the one whose code it is, or one inlined into it. */
struct symbol_frame {
	const char *function; /* mangled, as symbol_name(); NULL: only the line is known */
	const char *file;     /* NULL when unknown, */
	int line;             /* and then 0 */
	bool is_inlined;
};

#define SYMBOL_FRAMES_MAX 64 /* room for all that compilers do in practice */
