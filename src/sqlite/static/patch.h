/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts wrappers before functions of a SQLite that is linked into a program: a jump in the place
 * of each function's first instructions, to a stub (stub.h) in an area near the code.
 *
 * The kernel writes for us, through /proc/self/mem: no memory is ever writable and executable,
 * no mapping is split or gets other rights, and a process that may not make memory executable
 * (PR_SET_MDWE) is served, too. Where that file is refused, nothing is patched.
 *
 * Also compiled into the preload.
 */
#ifndef QUERYPROF_SQLITE_STATIC_PATCH_H
#define QUERYPROF_SQLITE_STATIC_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite/static/find.h"

#define PATCH_ENTRIES_MAX 32

struct patch_entry {
	const char *name;
	uintptr_t function; /* 0: none */
	const void *wrapper;
	void **real;         /* gets what the wrapper calls, before any jump is there */
	const char *refused; /* out: why it was left as it is, NULL: it was patched */
};

/* Memory near the code: the stubs, and behind them their unwind information. */
struct patch_area {
	uintptr_t start, end;
	uintptr_t code_end;
	uintptr_t unwinding, unwinding_end; /* .eh_frame_hdr, and the end of all of it */
};

/* Calls `write(context)` when no thread is inside of one of the functions. Returns its result, or
 * why it was not called. */
typedef const char *patch_moment(const struct static_range *functions, size_t count,
                                 const char *(*write)(void *), void *context);

/* Patches all entries but those that are refused; none if the first is. The jumps are written at
 * the `moment`, NULL: no thread can be inside of the functions. NULL, or why none was patched. */
const char *patch_functions(const struct static_object *object, struct patch_entry *entries, size_t count,
                            patch_moment *moment, struct patch_area *area);

/* Whether the function begins with a jump into the area. */
bool patch_leads_to(const struct patch_area *area, uintptr_t function);

/* The area's object is no longer there. */
void patch_free_area(struct patch_area *area);

#endif
