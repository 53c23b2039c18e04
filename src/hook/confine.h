/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that confines itself by seccomp: its filter is evaluated for the calls of base/own_calls.h
 * before it is installed, and queryprof no longer makes those that it would punish.
 *
 * A filter of one thread counts as one of the whole process, because it is not known in advance which
 * thread makes a call. A filter that is installed without the C library's prctl() or syscall(), or
 * that was installed before the library was loaded, is not seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "hook/import.h"

#define CONFINE_HOOKS_MAX 1

/* What a filter changes: bits of callers and of losses (base/own_calls.h) of the calls that it forbids. */
struct confinement {
	unsigned callers, losses; /* 1 << enum own_loss */
	size_t forbidden;         /* how many calls are in all */
};

struct confine_callbacks {
	bool (*is_here)(void); /* not in a child of vfork() */
	/* The host is about to install a filter; all calls may still be made. */
	void (*begins)(const struct confinement *confinement);
	/* The kernel refused the filter, so the calls are not forbidden. */
	void (*was_refused)(void);
};

/* Before the hooks are installed; the structure stays. */
void confine_follow(const struct confine_callbacks *callbacks);

/* Around a system call of the host's that may install a filter, by its number and arguments. */
struct confining {
	bool is_filter, is_forbidding;
	bool is_result_thread; /* a positive result names a thread that cannot follow */
};
struct confining confine_before_call(long number, long a, long b, long c);
void confine_after_call(const struct confining *confining, long result);

/* How many filters of the host have been evaluated, and are in force. */
int confine_seen(void);

/* The names of forbidden calls. Returns `to`. */
char *confine_names(char *to, size_t room);

/* Checks for a filter that cannot be read, because the process inherited it. Once, at the start. */
void confine_inspect(void);
bool confine_has_unknown_filter(void);

/* Fills the hooks; returns their number. */
int confine_hooks(struct import_hook hooks[CONFINE_HOOKS_MAX]);
