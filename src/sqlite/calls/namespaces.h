/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite in a separate namespace (dlmopen()). It is not followed: the C library there has its own
 * errno, which a replaced call (hook/waits.c) would not set, and without replaced calls a signal
 * shortens the waits of queries. dl_iterate_phdr() does not list the objects there either. Findings
 * are reported.
 *
 * Only part of the preload.
 */
#pragma once

/* Calls `found` with the path of each object with SQLite in another namespace than the caller's, once for
 * each path. Takes the lock of the loader's list only. One thread at a time. */
void namespaces_check(void (*found)(const char *path));
