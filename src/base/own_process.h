/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the memory that a function sees is its own process's. In a child of vfork() it is the parent's, and
 * so it is in a child that came without fork()'s hooks.
 */
#ifndef QUERYPROF_BASE_OWN_PROCESS_H
#define QUERYPROF_BASE_OWN_PROCESS_H

#include <stdbool.h>

/* Async-signal-safe. */
bool own_process_is_here(void);

/* From now on it is the calling process's: at the start, and in a forked child. */
void own_process_renew(void);

#endif
