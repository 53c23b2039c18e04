/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's SQLite, through the table of routines that it gives to extensions. In this folder
 * `sqlite3_…` always means the host's copy, never the store's.
 *
 * A process can have several SQLite libraries, and an object of one must never reach a function of
 * another. So the routines are those of the library that the code runs inside, according to the
 * enclosing call (calling.h). With one library, as nearly always, nothing must be looked up.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3ext.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/of_recorder.h"

#define HOST_LIBRARIES_MAX 4

/* SQLCipher's in Debian 12. sqlite3_trace_v2 and persistent loading are older. */
#define HOST_OLDEST "3.15"
#define HOST_OLDEST_NUMBER 3015000

struct host_library {
	const sqlite3_api_routines *api;   /* atomic; without NULL among the routines up to 3.20 */
	const sqlite3_api_routines *table; /* its own */
	uintptr_t start, end;              /* of its image in memory */
	const char *name;                  /* version, a space, path */
	struct hash name_hash;             /* hash_bytes() of it */
	/* Relaxed atomics: the hooks see its own calls of its own functions, such as those of
	 * sqlite3_exec(); and, separately, the host's calls of sqlite3_step(). */
	bool calls_are_seen, steps_are_seen;
	bool is_bound; /* library_is_bound() */
	/* Atomic: see opcode/locations.h. */
	bool opcodes_tried;
	const struct opcode_library *opcodes;
	const char *unpatched; /* relaxed atomic; why its code was not patched when that was tried */
	bool is_patched;       /* the same; its functions begin with jumps to the wrappers (sqlite/static) */
};

/* In the order in which they were adopted, up to the first without `api`. */
ADDRESS_OF_RECORDER(struct host_library, host_libraries);
#ifdef QUERYPROF_REST
#define host_libraries (host_libraries_address())
#else
extern struct host_library host_libraries[HOST_LIBRARIES_MAX] __attribute__((visibility("hidden")));
#endif

static inline const sqlite3_api_routines *host_api(const struct host_library *library)
{
	/* Acquire: the rest of the entry, and the routines. */
	return __atomic_load_n(&library->api, __ATOMIC_ACQUIRE);
}

/* The library of the call that encloses the calling code; if that is not known, the library of the
 * thread's newest event of a trace callback, or the first. */
const struct host_library *host_find_current(void) __attribute__((noinline));

static inline const struct host_library *host_library(void)
{
	/* Relaxed: a thread with an object of the second library has seen that library. */
	return __builtin_expect(!__atomic_load_n(&host_libraries[1].api, __ATOMIC_RELAXED), 1)
	               ? &host_libraries[0]
	               : host_find_current();
}

#define sqlite3_api host_api(host_library())

static inline bool host_is_patched(const struct host_library *library)
{
	/* Relaxed: a call that comes while the code is being patched may take either way. */
	return __atomic_load_n(&library->is_patched, __ATOMIC_RELAXED);
}

/* Whether the code at `address` belongs to the library. */
static inline bool host_is_within(const struct host_library *library, const void *address)
{
	return (uintptr_t)address >= library->start && (uintptr_t)address < library->end;
}

/* The function in the library's own file, whatever was written into its table of routines; NULL:
 * the file exports none of this name. Does not wait while another thread is inside dlopen(). */
void *host_function(const struct host_library *library, const char *name);

/* The library of these routines, adopted if it is new. NULL, with a message in `*error`
 * (sqlite3_malloc of that library): it is too old, or there are too many. Any thread. */
const struct host_library *host_adopt(const sqlite3_api_routines *api, char **error);

/* The same, only if it is known already. */
const struct host_library *host_find(const sqlite3_api_routines *api);

/* Puts a routine that returns 0 in the place of those up to 3.20 that the version does not have or the
 * build has omitted (SQLITE_OMIT_…, SQLITE_THREADSAFE=0). */
void host_fill_omitted(sqlite3_api_routines *routines);

/* Enclose a call by queryprof that takes a process-wide mutex of SQLite (an automatic extension, a
 * connection): a child that is forked meanwhile would find it locked. fork() waits for such a
 * call. */
void host_enter_statics(void);
void host_leave_statics(void);
