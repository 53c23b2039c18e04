/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process and all its descendants in /proc. If the parent of a process has ended, /proc names another
 * parent, so a process that was found once stays known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"

struct tree_process {
	pid_t process;
	uint64_t start_ticks;
};

struct tree {
	VECTOR(struct tree_process) known;
};

/* The process that the tree begins with, or one of those found. False: no memory. */
bool tree_add(struct tree *tree, pid_t process);

/* Calls `found` for each new process below the known ones that has SQLite mapped: a file with "sqlite" in
 * its name. The process is known afterwards. */
void tree_search(struct tree *tree, void (*found)(void *context, pid_t process), void *context);

/* Whether any that is known still runs. */
bool tree_runs(const struct tree *tree);
void tree_free(struct tree *tree);
