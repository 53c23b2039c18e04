/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in which a thread may wait, and which queryprof's signals do not shorten: input and output,
 * mutexes and conditions, other processes. They are measured (query/wait.h) while a query runs, or is open
 * with the setting query_profiler_outside. Otherwise they are two loads and two branches longer.
 */
#pragma once

#include "hook/import.h"

#define CALLS_HOOKS_MAX 46

/* Fills the hooks; returns their number. */
int calls_hooks(struct import_hook hooks[CALLS_HOOKS_MAX]);
