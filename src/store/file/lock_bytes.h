/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that SQLite locks, as its file format defines them.
 */
#pragma once

/* In the database file. */
#define LOCK_BYTE_PENDING 0x40000000
#define LOCK_BYTE_RESERVED (LOCK_BYTE_PENDING + 1)
#define LOCK_BYTE_SHARED (LOCK_BYTE_PENDING + 2)
#define LOCK_BYTES_SHARED 510

/* In the WAL's index (DATABASE-shm): the locks for writing, checkpoint and recovery, and one for each
 * reader. */
#define LOCK_BYTE_OF_INDEX 120
#define LOCK_BYTES_OF_INDEX 8
