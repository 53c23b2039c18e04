/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The databases that a process has open, and the processes with locks on them, from /proc.
 * SQLite locks bytes of the database file and of the WAL's index; /proc/locks lists these bytes with the
 * processes that locked them. The first bytes of a file show that it is a database. The file is read, but
 * neither locked nor changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"
#include "wire/wait.h"

struct open_database {
	char *path;
	bool is_wal;
	uint64_t device, inode;
	uint64_t index_device, index_inode; /* of DATABASE-shm; 0: it is not open */
};

struct database_lock {
	size_t database;
	enum wait_object lock; /* WAIT_ON_SHARED and following */
	bool is_exclusive;
	pid_t process; /* 0: not known */
};

struct database_locks {
	VECTOR(struct open_database) databases;
	VECTOR(struct database_lock) locks;
	bool is_refused; /* the process's files may not be listed */
};

/* Omits what cannot be read. Free it. */
void database_locks_read(struct database_locks *locks, pid_t process);
void database_locks_free(struct database_locks *locks);
