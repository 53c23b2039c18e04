/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that becomes a daemon, or is about to start another program, may close every descriptor of its table
 * and open files under the same numbers. A page of the trace file that is then written to such a number would
 * end up in the host's file.
 *
 * So the store's threads have a separate descriptor table. The host cannot close its descriptors. They are
 * not in the host's /proc/self/fd, do not count towards the host's limit, and are not inherited by its
 * children.
 *
 * Code of the host may run on these threads: libc allocates memory for a new thread, and libdw for symbols,
 * by a malloc() that a preloaded library may have replaced, and that may write to descriptors by the host's
 * numbers. So the store uses other numbers, and lower ones are not writable. Its numbers begin at twice the
 * size of the host's table, at least at 256 and at most at 16384, and end at the limit. If the limit leaves
 * fewer than 64, they begin 64 below it, or at half of it.
 */
#pragma once

/* Gives the calling thread, and threads that it creates later, an empty descriptor table. 0, or the errno
 * value of the refused call. In that case the table may be the host's, so no file may be opened. */
int descriptors_separate(void);

/* Call it on a thread with that table before opening files: the host may have lowered its limit below the
 * store's numbers. */
void descriptors_fit_limit(void);
