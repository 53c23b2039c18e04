/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that the dynamic loader has mapped.
 *
 * dl_iterate_phdr() takes a lock that the C library does not renew in a forked child. If a thread of
 * the parent holds it at the fork, the next look-up and the next dlopen() of the child wait forever.
 * So all of queryprof uses these functions, and a fork() waits until no thread is inside.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Like dl_iterate_phdr(). `see` takes no lock and allocates no memory of the host. It does not
 * wait for a thread inside dlopen(), so a constructor of a library may call it. */
int loader_each(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context);

#define LOADER_BRIEFLY 50000000 /* ns */

/* dlopen(), dlsym(), dladdr() and dlinfo() wait while another thread is inside dlopen(), where a
 * constructor may wait for the calling thread. So call this before them. False: another thread has
 * the loader's lock for longer than `ns`. Recursive. Not inside loader_each(). */
bool loader_acquire(uint64_t ns);
void loader_release(void);

/* A reference to a loaded object by its name as loader_each() has it, NULL: there is none. `flags`: more than
 * dlopen(name, RTLD_LAZY | RTLD_NOLOAD). dlclose() ends it. */
void *loader_find(const char *name, int flags);

/* For pthread_atfork(). */
void loader_before_fork(void);
void loader_after_fork_in_parent(void);
void loader_after_fork_in_child(void);
