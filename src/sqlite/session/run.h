/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a run, see sqlite/runs/runs.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "query/query.h"
#include "sqlite/library/calling.h"
#include "sqlite/session/session.h"
#include "timers/push.h"

/* SQLite's counters of a statement over all its runs, in the order of its numbers from
 * SQLITE_STMTSTATUS_FULLSCAN_STEP on; read at both ends. */
enum counted {
	COUNTED_FULLSCAN_STEPS,
	COUNTED_SORTS,
	COUNTED_AUTOINDEXES,
	COUNTED_VM_STEPS,
	COUNTED_REPREPARES,
	STATEMENT_COUNTERS,
};

/* The session's settings, as they were when their number was `version`. */
struct run_settings {
	uint32_t version;
	bool log, log_parameters;
	uint64_t min_duration_ns;
	uint64_t period_ns[TIMER_CLOCKS], off_cpu_period_ns;
};

enum run_kind {
	RUN_STATEMENT, /* or the preparation of one */
	RUN_OPERATION,
	RUN_CLOSE, /* the operation that closes a connection */
	RUN_WAIT,  /* for a connection's mutex, which another thread has */
};

struct run {
	/* Up to `query`, and its beginning: what each step touches (base/hot_path.h). */
	uint64_t owner;     /* atomic: RUN_FREE, RUN_OPEN, RUN_ENDED, or the number of a call and flags */
	sqlite3_stmt *stmt; /* atomic; NULL while it is being prepared, and for operations */
	struct session *session;
	/* The place of its tag; tag_thread NULL: none. */
	struct thread *tag_thread;
	struct thread *tag_slot; /* its last place, like `tag`, which it may use again; NULL: none */
	uint64_t tag;
	uint64_t statement; /* as statement_stats_find() has it, 0: not known yet */
	bool is_private;    /* atomic: counted in the session's private_runs, does not hold it */
	bool is_queryprofs; /* see own_statements_disown() */
	bool prepared;      /* and not stepped yet: the run is paused */
	bool kept;          /* counted as one that stays when it ends */
	bool is_traced;     /* its text names a trace of others that is sampled: each run has a row */
	uint8_t kind;       /* enum run_kind */
	struct query_run query;
	/* Up to `counters`: what each run touches, after the end of `query`. */
	int at_start[STATEMENT_COUNTERS];
	int vm_steps; /* of them at the end of the run before */
	struct run_settings settings;
	const volatile int *counters;    /* where SQLite has them, NULL: SQLite's function reads them */
	const volatile int *mutex_owner; /* of a run of the trace callback: what its tag points to */
	struct scan_counts *scans; /* at the run's beginning; of the place in the table, which keeps it */
	struct module_counts *module_counts; /* module_counts.h; NULL: none. Kept like `scans` */
	struct run_caller *caller;           /* run_caller.h; NULL: not read */
	char *database;                      /* of an operation, NULL: that of the session */
	char query_id[QUERY_ID_MAX + 1];     /* the user's own */
	char label[128];                     /* "", or the text of an operation */
} __attribute__((aligned(64)));
