/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: why a thread waits, for what, and what the waits of a query come to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* trace_log.wait_cause. A number keeps its meaning for ever, as it stands in files. The names are
 * in sql/schema/store_schema.sql, the view wait_causes. */
enum wait_cause {
	WAIT_NONE = 0,
	WAIT_LOCK = 1, /* of a database */
	WAIT_SYNC = 2,
	WAIT_READ = 3,
	WAIT_WRITE = 4,
	WAIT_SPILL = 5,      /* reads and writes of temporary files */
	WAIT_CHECKPOINT = 6, /* all of a checkpoint's input and output */
	WAIT_MUTEX = 7,
	WAIT_CONDITION = 8,
	WAIT_SLEEP = 9,
	WAIT_NETWORK = 10,
	WAIT_POLL = 11,
	WAIT_THREAD = 12,        /* for the end of one */
	WAIT_FILE = 13,          /* opened, closed, truncated, mapped */
	WAIT_USER_FUNCTION = 14, /* outside SQLite's code; the object is the cause there */
	WAIT_FUTEX = 15,         /* by syscall() */
	/* Two that are known when a query has ended, and not where. */
	WAIT_PAGE_FAULT = 16,
	WAIT_RUN_QUEUE = 17,
	WAIT_PROCESS = 18, /* for the end of one */
};

/* trace_log.wait_object: what was waited for. Numbers as above; the view wait_objects. */
enum wait_object {
	WAIT_OBJECT_NONE = 0,
	WAIT_ON_DATABASE = 1,
	WAIT_ON_JOURNAL = 2,
	WAIT_ON_WAL = 3,
	WAIT_ON_WAL_INDEX = 4,
	WAIT_ON_TEMPORARY = 5,
	WAIT_ON_PIPE = 6,
	WAIT_ON_SOCKET = 7,
	WAIT_ON_FILE = 8,
	WAIT_ON_CONNECTION = 9, /* mutexes of SQLite */
	WAIT_ON_PAGE_CACHE = 10,
	WAIT_ON_ALLOCATOR = 11,
	WAIT_ON_OTHER_MUTEX = 12,
	WAIT_ON_FOLDER = 13, /* of a file that was made or removed */
	WAIT_ON_SHARED = 16, /* locks of a database; SQLite's lock levels from here */
	WAIT_ON_RESERVED = 17,
	WAIT_ON_PENDING = 18,
	WAIT_ON_EXCLUSIVE = 19,
	WAIT_ON_WAL_WRITE = 24, /* SQLite's locks of the WAL index from here; all readers' are the last */
	WAIT_ON_WAL_CHECKPOINT = 25,
	WAIT_ON_WAL_RECOVER = 26,
	WAIT_ON_WAL_READ = 27,
	WAIT_ON_CAUSE = 32, /* of a user function: plus its cause */
};

const char *wait_cause_name(uint32_t cause);
const char *wait_lock_name(uint32_t object); /* "": it is no lock */

static inline bool wait_is_of_file(enum wait_cause cause)
{
	return cause == WAIT_READ || cause == WAIT_WRITE || cause == WAIT_SYNC || cause == WAIT_FILE;
}

/* The sums of a run; query_log's columns. */
enum wait_sum {
	WAIT_LOCK_NS,
	WAIT_READ_NS,
	WAIT_WRITE_NS,
	WAIT_SYNC_NS,
	WAIT_MUTEX_NS,
	WAIT_SLEEP_NS,
	WAIT_OTHER_NS,
	WAIT_TIMES, /* the sums above are times */
	WAIT_READS = WAIT_TIMES,
	WAIT_READ_BYTES,
	WAIT_WRITES,
	WAIT_WRITTEN_BYTES,
	WAIT_SYNCS,
	WAIT_SUMS,
};

/* The content of a sample's FIELD_WAIT. */
struct wait_field {
	uint64_t ns; /* of the one wait, from its beginning to its end */
	uint32_t cause, object;
};

/* The wait of a thread at this moment. Written by the thread, read by others, and by other processes
 * (collect/open_waits.h): relaxed atomics. */
struct wait_now {
	uint64_t since, scale; /* struct fast_moment; since 0: it does not wait */
	uint32_t cause;        /* of the call */
	uint32_t lock;         /* that SQLite requested last and was refused, enum wait_object; 0: none */
	const void *caller;    /* of the call */
	uint64_t lock_since_ns;
	/* Who had the lock when it was refused first, as far as it is known; 0: not. */
	uint32_t holder_session, holder_process, holder_thread;
	uint64_t query; /* the lower half of its key */
	/* The period of the thread's samples, and how much longer it has to wait until the next. */
	uint64_t period_ns, due_ns;
};

/* And what only the thread itself has to know. */
struct thread_wait {
	uint32_t is_checkpointing; /* it has the lock for that */
	uint64_t lock_query;       /* that requested it: the lower half of its key */
	uint32_t refused_by;       /* the process that had what fcntl() refused last; 0: not known */
	uint64_t switches;  /* by which it gave its processor up, at the newest reading of its CPU clock */
	uint64_t waited_ns; /* of all calls that have ended: what stands in the sums */
	uint64_t turn;      /* the number of the newest turn, see query/turn.h */
	/* Where the newest query that it has waited for is its only one: the query's sums, which only this
	 * thread has, and its frame. Else that is 0. */
	uint64_t *sums;
	uintptr_t frame, frame_return;
};

/* The kernel's counts of a thread, see query/account.h. */
struct thread_account {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: not read yet */
	uint64_t run_delay_ns;
	uint64_t major_faults, minor_faults;
	uint64_t voluntary_switches, involuntary_switches;
};
