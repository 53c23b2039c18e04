/*
 * How a process ends without exit(): _exit(), quick_exit(), with its last thread, and by
 * the exec functions, with which it becomes another program.
 */
#ifndef QUERYPROF_HOOK_EXIT_H
#define QUERYPROF_HOOK_EXIT_H

#include "hook/import.h"

#define ENDS_HOOKS_MAX 11

/* Fills the hooks; returns their number. */
int ends_hooks(struct got_hook hooks[ENDS_HOOKS_MAX]);

#endif
