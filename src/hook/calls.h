/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in which a thread may wait, and which queryprof's signals do not shorten: input and output,
 * mutexes and conditions. They are measured (query/wait.h) where a query runs, and are otherwise
 * one load and a branch longer.
 */
#ifndef QUERYPROF_HOOK_CALLS_H
#define QUERYPROF_HOOK_CALLS_H

#include "hook/import.h"

#define CALLS_HOOKS_MAX 40

/* Fills the hooks; returns their number. */
int calls_hooks(struct import_hook hooks[CALLS_HOOKS_MAX]);

#endif
