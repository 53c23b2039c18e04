/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that the dynamic loader has mapped.
 *
 * dl_iterate_phdr() takes a lock that the C library does not renew in a forked child. If a thread of the
 * parent is in it at the fork, the next look-up and the next dlopen() of the child wait for ever. So all of
 * queryprof looks here, and a fork() waits until no thread does.
 */
#ifndef QUERYPROF_BASE_LOADER_H
#define QUERYPROF_BASE_LOADER_H

#include <link.h>
#include <stddef.h>

/* As dl_iterate_phdr(). `see` takes no lock and allocates nothing of the host's. It does not wait for a
 * thread inside dlopen(), so a constructor of a library may call it. */
int loader_each(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context);

/* For pthread_atfork(). */
void loader_before_fork(void);
void loader_after_fork_in_parent(void);
void loader_after_fork_in_child(void);

#endif
