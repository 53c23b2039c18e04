/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which a process gives up rights with which it began: users, groups, root folder.
 * Before that, queryprof does everything for which it needs these rights.
 */
#pragma once

#include "hook/import.h"

#define RIGHTS_HOOKS_MAX 11

/* `before` is called before each such call of a process with root's rights, maybe in a child
 * of vfork(). Before the hooks are installed. */
void rights_follow(void (*before)(void));

/* Fills the hooks; returns their number. */
int rights_hooks(struct import_hook hooks[RIGHTS_HOOKS_MAX]);
