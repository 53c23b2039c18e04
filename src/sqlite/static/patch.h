/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts wrappers before functions of a SQLite that is linked into a program: a jump replaces each
 * function's first instructions and leads to a stub (stub.h) in an area near the code.
 *
 * The kernel writes for us, through /proc/self/mem: no memory is ever writable and executable, no
 * mapping is split or changes its rights, and it works in a process that may not make memory
 * executable (PR_SET_MDWE). If that file is refused, nothing is patched.
 *
 * Also compiled into the preload.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite/static/object.h"

#define PATCH_ENTRIES_MAX 32

struct patch_entry {
	const char *name;
	uintptr_t function; /* 0: none */
	const void *wrapper;
	void **real;         /* gets the function for the wrapper to call, before any jump exists */
	const char *refused; /* out: why it is unchanged, NULL: it was patched */
};

/* Memory near the code: the stubs, followed by their unwind information. */
struct patch_area {
	uintptr_t start, end;
	uintptr_t code_end;
	uintptr_t unwinding, unwinding_end; /* .eh_frame_hdr, and the end of all of it */
};

/* Calls `write(context)` when no thread is inside one of the functions. Returns its result, or why
 * it was not called. */
typedef const char *patch_moment(const struct static_range *functions, size_t count,
                                 const char *(*write)(void *), void *context);

/* Patches all entries except refused ones; none if the first is refused. The `moment` writes the
 * jumps, NULL: no thread can be inside the functions. NULL, or why none was patched. */
const char *patch_functions(const struct static_object *object, struct patch_entry *entries, size_t count,
                            patch_moment *moment, struct patch_area *area);

/* Whether the function begins with a jump into the area. */
bool patch_leads_to(const struct patch_area *area, uintptr_t function);

/* The area's object was unmapped. */
void patch_free_area(struct patch_area *area);
