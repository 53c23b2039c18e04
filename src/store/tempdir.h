/*
 * The private directory of a store that goes with its process.
 */
#ifndef QUERYPROF_STORE_TEMPDIR_H
#define QUERYPROF_STORE_TEMPDIR_H

#include <sys/types.h>

struct tempdir {
	char *path; /* NULL: none */
	int lock;   /* held as long as the process lives */
	dev_t device; /* of the lock: the host may close our descriptors */
	ino_t inode;
};

/* Makes queryprof-XXXXXX (mode 0700) in $TMPDIR or /tmp, and removes those that
 * killed processes of the same user left there. 0 or an errno value. */
int tempdir_make(struct tempdir *directory);

/* Removes the directory and the trace file in it. */
void tempdir_remove(struct tempdir *directory);

/* The directory is another process's (the parent's): forgets it. */
void tempdir_forget(struct tempdir *directory);

#endif
