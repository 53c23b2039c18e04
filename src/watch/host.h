/*
 * The host's SQLite, through the table of routines that it hands to extensions:
 * in this folder `sqlite3_…` always means the host's copy, never the store's own.
 *
 * A process can have several SQLite libraries, and an object of one must never reach a
 * function of another. So the routines are those of the library that the thread is in:
 * whatever the host calls says at the beginning which that is (host_enter()), and puts
 * back what was before at the end. With one library, as nearly always, nothing need be
 * said: it stands for all that is not known.
 */
#ifndef QUERYPROF_WATCH_HOST_H
#define QUERYPROF_WATCH_HOST_H

#include <stdbool.h>
#include <sqlite3ext.h>
#include <stdint.h>

#define HOST_LIBRARIES_MAX 4

struct host_library {
	const sqlite3_api_routines *api;
	uintptr_t start, end; /* of its image in memory */
	const char *name;     /* version, a space, path */
	/* Relaxed atomics: the hooks see its own calls of its own functions, as sqlite3_exec()'s;
	 * and, besides, the host's calls of sqlite3_step(). */
	bool calls_are_seen, steps_are_seen;
};

/* In the order in which they were adopted, up to the first without `api`. */
extern struct host_library host_libraries[HOST_LIBRARIES_MAX] __attribute__((visibility("hidden")));

/* The library that the thread is in, NULL: not known. */
extern __thread const struct host_library *host_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline const struct host_library *host_library(void)
{
	return host_current ? host_current : &host_libraries[0];
}

#define sqlite3_api (host_library()->api)

/* What was before, for host_leave(). */
static inline const struct host_library *host_enter(const struct host_library *library)
{
	const struct host_library *before = host_current;

	host_current = library;
	return before;
}

static inline void host_leave(const struct host_library *before)
{
	host_current = before;
}

/* Whether the code at `address` is the library's own. */
static inline bool host_is_within(const struct host_library *library, const void *address)
{
	return (uintptr_t)address >= library->start && (uintptr_t)address < library->end;
}

/* The library of these routines, taken on if it is new. NULL, with a message in `*error`
 * (sqlite3_malloc of that library): it is too old, or there are too many. Any thread. */
const struct host_library *host_adopt(const sqlite3_api_routines *api, char **error);

/* The same, only if it is known already. */
const struct host_library *host_find(const sqlite3_api_routines *api);

#endif
