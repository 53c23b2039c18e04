/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that SQLite locks: parts of its file format.
 */
#pragma once

/* Of the database file. */
#define LOCK_BYTE_PENDING 0x40000000
#define LOCK_BYTE_RESERVED (LOCK_BYTE_PENDING + 1)
#define LOCK_BYTE_SHARED (LOCK_BYTE_PENDING + 2)
#define LOCK_BYTES_SHARED 510

/* Of the WAL's index (DATABASE-shm): to write, for a checkpoint, to recover, and one for each reader. */
#define LOCK_BYTE_OF_INDEX 120
#define LOCK_BYTES_OF_INDEX 8
