/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a wait for a lock of a database.
 */
#pragma once

#include <stdint.h>

#include "wire/record.h"

/* Bytes of the holder's statement that are kept, with the zero. */
#define LOCK_TEXT_MAX 256

/* The holder of a lock; zero where it is not known. */
struct lock_holder {
	struct query_key query; /* that took it */
	uint32_t process_id, thread_id, session;
	uint32_t transaction; /* its number, see transaction_record.h */
};

enum lock_outcome {
	LOCK_GIVEN,
	LOCK_REFUSED,
	LOCK_WAITING, /* of a long wait that continues: its next record replaces this one */
	LOCK_LASTED,  /* that went on until its process or its recording ended: of this record only thread and
	                 time are set */
};

/* A wait is published when it has lasted so long, again when it has doubled, and so on. */
#define LOCK_WAIT_PUBLISHED_NS 100000000ull

/* The database's path and the beginnings of the holder's statement and of `first_query` are consecutive in
 * `text`, without terminators. */
struct lock_wait_record {
	struct query_key query;
	uint64_t start_realtime_ns, wait_ns;
	uint32_t lock;    /* enum wait_object */
	uint32_t outcome; /* enum lock_outcome */
	uint32_t thread_id;
	struct lock_holder holder; /* of the first refusal; of SQLITE_BUSY_SNAPSHOT: who has written since */
	uint32_t tries;            /* how often SQLite was refused the lock; 0: it did not request one */
	uint32_t code;             /* SQLite's extended result code; 0: the statement goes on */
	/* The waiter's own transaction, if an earlier statement began it: its number, which statement that
	 * was, and how long it had been open when the lock was refused. */
	uint32_t transaction;
	uint64_t age_ns;
	uint32_t database_size, holder_size, first_size;
	char text[];
};
