/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty demangles.
 *
 * Its two demanglers are called directly: the entry that tries every language
 * also knows some whose code ends the process when memory runs out. Their own
 * limits on length and recursion stay on; a name beyond them stays as it is.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <stddef.h>

char *symbol_demangle(const char *name)
{
	enum { OPTIONS = DMGL_PARAMS | DMGL_ANSI };

	/* Rust's legacy scheme looks like C++; only Rust's demangler drops its hash. */
	if (name[0] != '_')
		return NULL;
	char *text = rust_demangle(name, OPTIONS);
	return text ? text : cplus_demangle_v3(name, OPTIONS);
}
