/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VFS of the store's private SQLite: the system's own, except that the WAL index (the file -shm)
 * is never mapped into the host's memory.
 */
#pragma once

/* The name for sqlite3_open_v2(). */
#define WAL_INDEX_VFS "queryprof"

/* Registers the VFS on top of the one named "unix". Once, after sqlite3_initialize(). */
void wal_index_register(void);
