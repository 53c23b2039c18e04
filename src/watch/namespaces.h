/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite in a namespace of its own (dlmopen()). It is not followed: the C library is there a second time,
 * its keys of thread-specific data are numbered anew, and the values lie in the same memory of a thread. So
 * queryprof's values could be taken for the module's, and the reverse. What is found is reported.
 *
 * Only of the preload.
 */
#ifndef QUERYPROF_WATCH_NAMESPACES_H
#define QUERYPROF_WATCH_NAMESPACES_H

/* Calls `found` with the path of each object with SQLite in another namespace than the caller's, once for
 * each path. Takes the lock of the loader's list only. One thread at a time. */
void namespaces_look(void (*found)(const char *path));

#endif
