/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VFS of the store's private SQLite: the system's, except that it never maps the WAL index (the file
 * -shm) into the host's memory.
 */
#pragma once

/* Its name for sqlite3_open_v2(). */
#define WAL_INDEX_VFS "queryprof"

/* Registers the VFS on top of the one named "unix". Call it once, after sqlite3_initialize(). */
void wal_index_register(void);
