/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways in which a process ends without exit(): _exit(), quick_exit(), with its last thread, and by
 * the exec functions, with which it becomes another program.
 */
#pragma once

#include "hook/import.h"

#define EXIT_HOOKS_MAX 11

/* Calls before the process ends. All may come in a signal handler, and in a child of
 * vfork(), which has its parent's memory. */
struct exit_callbacks {
	void (*process_ends)(void); /* before _exit(), _Exit() and exec, and within quick_exit() */
	void (*thread_ends)(void);  /* before pthread_exit() */
};

/* Before the hooks are installed; the structure stays. */
void exit_follow(const struct exit_callbacks *callbacks);

/* Fills the hooks; returns their number. */
int exit_hooks(struct import_hook hooks[EXIT_HOOKS_MAX]);
