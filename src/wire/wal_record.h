/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a WAL: what happened to it, and each checkpoint.
 */
#pragma once

#include <stdint.h>

#include "wire/lock_record.h"

enum wal_event {
	WAL_GROWS,     /* transactions of one statement have appended frames */
	WAL_RESTARTS,  /* a writer begins at the first frame */
	WAL_TRUNCATES, /* the file is cut */
	WAL_RECOVERS,  /* the index was made from the file */
};

/* The database's path and the beginning of the statement are consecutive in `text`, without
 * terminators. */
struct wal_record {
	struct query_key query; /* zero: not known */
	uint64_t statement;     /* its normalized_query_hash; 0: not known */
	uint64_t start_realtime_ns, duration_ns;
	uint64_t frames; /* appended; of other events: those in the WAL, as far as its writer knows */
	uint32_t event;  /* enum wal_event */
	uint32_t first_frame, last_frame, transactions;
	uint32_t page_size; /* 0: not known */
	uint32_t session, thread_id;
	uint32_t database_size, query_size;
	char text[];
};

enum checkpoint_mode { CHECKPOINT_PASSIVE, CHECKPOINT_FULL, CHECKPOINT_RESTART, CHECKPOINT_TRUNCATE };

/* Why the statement ran a checkpoint. */
enum checkpoint_origin {
	CHECKPOINT_BY_COMMIT,
	CHECKPOINT_BY_PRAGMA,
	CHECKPOINT_BY_FUNCTION,
	CHECKPOINT_BY_CLOSE
};

/* The newest lock that SQLite refused to the checkpoint. */
enum checkpoint_obstacle {
	OBSTACLE_NONE,
	OBSTACLE_CHECKPOINT, /* another checkpoint runs */
	OBSTACLE_WRITER,
	OBSTACLE_READER,  /* with the read mark `mark`: frames after it are not copied */
	OBSTACLE_READERS, /* of the WAL, which cannot begin again */
};

/* The database's path and the beginnings of the statement and of the holder's are consecutive in `text`,
 * without terminators. */
struct checkpoint_record {
	struct query_key query; /* that ran it */
	uint64_t statement;     /* its normalized_query_hash; 0: not known */
	uint64_t start_realtime_ns, duration_ns;
	uint64_t cpu_ns;
	uint64_t write_ns, wal_sync_ns, database_sync_ns; /* inside SQLite's VFS */
	uint64_t bytes;                                   /* written to the database */
	int32_t result;                                   /* of SQLite */
	uint32_t mode, origin;
	uint32_t has_frames; /* 0: the next three, and those of marks, are not known */
	uint32_t frames;     /* in the WAL */
	uint32_t copied_before, copied_after;
	uint32_t obstacle, mark, mark_frame;
	struct lock_holder holder;         /* of that lock */
	uint64_t holder_since_realtime_ns; /* the beginning of its transaction; 0: not known */
	uint64_t stopped_ns;               /* from the first refusal on */
	uint32_t page_size, session, thread_id;
	uint32_t database_size, query_size, holder_size;
	char text[];
};
