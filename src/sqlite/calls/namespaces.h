/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite in a namespace of its own (dlmopen()). It is not followed: the C library there has an errno of its
 * own, which a replaced call (hook/waits.c) would not set, and without replaced calls a signal shortens the
 * waits of queries. Nor does dl_iterate_phdr() list the objects there. What is found is reported.
 *
 * Only of the preload.
 */
#ifndef QUERYPROF_SQLITE_CALLS_NAMESPACES_H
#define QUERYPROF_SQLITE_CALLS_NAMESPACES_H

/* Calls `found` with the path of each object with SQLite in another namespace than the caller's, once for
 * each path. Takes the lock of the loader's list only. One thread at a time. */
void namespaces_check(void (*found)(const char *path));

#endif
