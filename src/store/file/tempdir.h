/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private directory of a store. It is removed when its process ends.
 */
#pragma once

#include <stdbool.h>

struct tempdir {
	char *path; /* NULL: there is none */
	int lock;   /* held as long as the process lives */
};

/* Makes queryprof-XXXXXX (mode 0700) in $TMPDIR or /tmp, and removes the directories that killed
 * processes of the same user left there. 0 or an errno value. */
int tempdir_make(struct tempdir *directory);

/* False: another process has removed it. */
bool tempdir_is_there(const struct tempdir *directory);

/* Removes the directory and the trace file in it. */
void tempdir_remove(struct tempdir *directory);

/* In a forked child: the directory and the descriptor of its lock belong to the parent. */
void tempdir_forget(struct tempdir *directory);
