/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that becomes a daemon, or is about to start another program, may close every
 * descriptor of its table and open files of its own under the same numbers. A page of the
 * trace file written to such a number would be in the host's file.
 *
 * So the store's threads have a descriptor table of their own. Nothing that the host closes
 * is in it, and nothing in it is in the host's /proc/self/fd, counts towards the host's
 * limit, or goes to its children.
 *
 * Code of the host's may run on these threads: libc takes memory for a new thread, and libdw for symbols, by
 * a malloc() that a preloaded library may have replaced, and that writes to descriptors of the host's
 * numbers. So ours have other numbers: they begin at twice the size of the host's table, at 256 at least and
 * at 16384 at most, and leave 64 numbers below the limit, or half of it. No number below can be written to.
 */
#ifndef QUERYPROF_STORE_FILE_DESCRIPTORS_H
#define QUERYPROF_STORE_FILE_DESCRIPTORS_H

#include <stdbool.h>

/* Gives the calling thread, and the threads that it makes from now on, an empty descriptor
 * table of their own. 0, or the errno value of the call that the system refuses: the table
 * may be the host's, and no file may be opened. */
int descriptors_separate(void);

/* On a thread with that table, before files are opened: the host may have lowered its limit to less than the
 * store's numbers. */
void descriptors_fit_limit(void);

#endif
