/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that becomes a daemon, or is about to start another program, may close every descriptor of
 * its table and open its own files under the same numbers. A page of the trace file written to such a
 * number would be in the host's file.
 *
 * So the store's threads have a separate descriptor table. The host cannot close anything in it, and
 * nothing in it is in the host's /proc/self/fd, counts towards the host's limit, or is inherited by
 * its children.
 *
 * Code of the host may run on these threads: libc allocates memory for a new thread, and libdw for
 * symbols, by a malloc() that a preloaded library may have replaced, and that writes to descriptors
 * with the host's numbers. So the store uses other numbers: they begin at twice the size of the
 * host's table, at least 256 and at most 16384, and leave 64 numbers below the limit, or half of it.
 * Numbers below are not writable.
 */
#pragma once

/* Gives the calling thread, and the threads that it makes later, an empty descriptor table. 0, or
 * the errno value of the refused call: then the table may be the host's, and no file may be
 * opened. */
int descriptors_separate(void);

/* On a thread with that table, before files are opened: the host may have lowered its limit below
 * the store's numbers. */
void descriptors_fit_limit(void);
