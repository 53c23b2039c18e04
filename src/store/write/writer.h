/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes records to the trace file: one transaction a batch. Belongs to one thread,
 * the flusher.
 */
#ifndef QUERYPROF_STORE_WRITE_WRITER_H
#define QUERYPROF_STORE_WRITE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/vector.h"
#include "modules/module_history.h"
#include "store/columns.h"
#include "store/file/database.h"
#include "store/write/delays.h"
#include "store/write/span_rows.h"
#include "wire/query_record.h"

struct ring;
struct span_site_record;

enum writer_statement {
	WRITE_BEGIN,
	WRITE_COMMIT,
	WRITE_ROLLBACK,
	WRITE_STATE,
	WRITE_FIND_PROCESS,
	WRITE_PROCESS,
	WRITE_FLUSH,
	WRITE_FIND_FLUSH,
	WRITE_FIND_THREAD,
	WRITE_THREAD,
	WRITE_NEWEST_THREAD,
	WRITE_FIND_SERIES,
	WRITE_SERIES,
	WRITE_SERIES_EPOCH,
	WRITE_FIND_MODULE,
	WRITE_MODULE,
	WRITE_RANGE_END,
	WRITE_FREE_RANGE,
	WRITE_FIND_STACK,
	WRITE_STACK,
	WRITE_STACK_EPOCH,
	WRITE_FIND_STATEMENT,
	WRITE_STATEMENT,
	WRITE_FIND_LIBRARY,
	WRITE_LIBRARY,
	WRITE_FIND_QUERY,
	WRITE_QUERY,
	WRITE_QUERY_START,
	WRITE_QUERY_RUNNING,
	WRITE_QUERY_END,
	WRITE_UNUSED_STATEMENT,
	WRITE_QUERY_RANGE,
	WRITE_SAMPLES,
	WRITE_LAST_TIME,
	WRITE_EPOCH,
	WRITE_BATCH,
	WRITE_FIND_BATCH,
	WRITE_NEWEST,
	WRITE_LATE_SAMPLE,
	WRITE_LOSS,
	WRITE_REMOVE_OPEN_WAIT,
	WRITE_LOCK_WAITED,
	WRITE_LOCK_WAIT,
	WRITE_TRANSACTION,
	WRITE_STATEMENT_COUNTS,
	WRITE_STATEMENT_PART,
	WRITE_FIND_LABELS,
	WRITE_LABELS,
	WRITE_LABELS_TEXT,
	WRITE_LABELS_EPOCH,
	WRITE_LABEL_VALUE,
	WRITE_LABEL_USE,
	WRITE_LABEL_USE_END,
	WRITE_FIND_CONTEXT,
	WRITE_CONTEXT,
	WRITE_CONTEXT_EPOCH,
	WRITE_FIND_SPAN_SITE,
	WRITE_SPAN_SITE,
	WRITE_SPAN_ROWS,
	WRITE_NEWEST_SPANS,
	WRITE_SPAN_NOTE,
	WRITE_SPAN_LINK,
	WRITE_SPAN_WAIT,
	WRITE_FIND_TRACE,
	WRITE_REMOVE_FOREIGN,
	WRITE_REMOVE_NOTES,
	WRITE_EMPTY_NEWEST,
	WRITE_REMOVE_TRACE,
	WRITE_PROGRAM,
	WRITE_PLAN,
	WRITE_PLAN_NODE,
	WRITE_PROGRAM_OPCODE,
	WRITE_PLAN_LOOP,
	WRITE_PLAN_MISSING,
	WRITE_PLAN_FOUND,
	WRITE_STATEMENTS,
};

/* Samples and other records of one transaction at most. */
#define WRITER_BATCH 16384

#define WRITER_NOTHING(...)

struct pending_sample {
	int64_t timestamp_ns;
	int64_t series, stack;
	int64_t beyond; /* what the value has beyond weight × period */
	int64_t labels, context;
	int64_t wait_ns, wait; /* of a wait: its duration; its cause, and its object << 8 */
	uint32_t span;         /* index into writer.spans; UINT32_MAX: no query */
	uint32_t cpu_id, weight;
	int64_t opcode;
	bool truncated;
	uint64_t request_span; /* that the sample fell into, 0: none */
};

/* The texts of a query record. */
struct query_texts {
	struct text {
		const char *bytes;
		size_t size;
	} query_id, query, database, exception, library, expanded;
};

/* Rows that a query's row names. */
struct query_rows {
	int64_t query, initial, parent, statement, library, labels, context;
};

/* One query in the batch: its first and last time, its samples, and its records. */
struct query_span {
	struct query_key key;
	struct query_rows rows;
	bool is_new; /* not in the file yet */
	int64_t first_ns, last_ns;
	int64_t samples[TRACE_TYPES], weights[TRACE_TYPES];
	int64_t cpu_time_ns;
	int64_t labels, context;              /* of its first sample with some */
	const struct start_record *start;     /* NULL: none */
	const struct start_record *seen_open; /* NULL: not by the flusher */
	const struct query_record *end;       /* NULL: none, it goes on */
	struct query_texts texts;             /* of the end */
	int64_t left; /* the statement that an earlier batch's start published, 0: none other */
};

/* How the file names a process. */
struct writer_identity {
	char hostname[65];
	char executable[256];
	int64_t process_id;
	int64_t start_time_ns;
};

/* Another process, whose records this one writes. */
struct writer_other {
	const struct module_log *log; /* its own, of at most so many bytes */
	size_t log_size;
	struct module_history modules; /* what was read of the log, */
	uint32_t generation;           /* up to this generation */
};

/* A statement of seldom use is prepared at its first use. */
struct kept_statement {
	const char *sql; /* a literal, known by its address */
	sqlite3_stmt *statement;
};

struct writer {
	int64_t contended_until_ns; /* others were seen writing, not long ago */
	struct database database;
	sqlite3_stmt *statements[WRITE_STATEMENTS];
	VECTOR(struct kept_statement) kept; /* of writer_run_sql() */
	struct writer_identity identity;
	struct writer_other *other; /* NULL: the records are those of this process */

	/* Known of the file; forgotten when it may have changed. */
	int64_t file_identity, process, removals, program_removals, epoch;
	struct hash_table threads, series, stacks, queries, texts, libraries, modules, labels, contexts;
	struct hash_table earlier_queries; /* see intern_begin_batch() */

	/* The thread and series of the sample before. */
	struct {
		uint32_t thread_id;
		uint8_t trace_type;
		uint64_t period_ns;
		uint32_t stretch;
		int64_t series; /* 0: none */
	} last;

	/* The batch. */
	uint32_t batch; /* its number: an entry with this number has a span in it */
	size_t sample_count;
	size_t samples_inserted, sample_at; /* of WRITE_SAMPLES: rows that are there, and the one it reads */
	size_t delay_count; /* of the samples, those of delays: no record of the ring is theirs */
	struct delays delays;
	size_t query_count, bytes; /* bytes: what it will take in the file, about */
	size_t fields_skipped;     /* optional fields of samples that this build does not know */
	size_t rewritten;          /* of rows that are in the file, about */
	struct pending_sample *samples;
	VECTOR(struct query_span) spans;
	int64_t newest_query; /* row of queries, those of the batch included */

	int64_t stored_batch;    /* its row in the file's table of batches */
	int64_t statement_batch; /* the number of the transaction that stores counters of statements */
	bool is_batch_announced; /* state.statement_batches has it */
	int64_t process_newest;  /* time of the process's newest sample in earlier batches */
	int64_t sample_first, sample_last; /* times of its samples */

	const char *path; /* of the open file: the caller's */
	char *failure;    /* writer_failure() */
	/* Rows of statement_counters, at most: -1: not known. */
	int64_t counted_statements;

	/* For spans.c: what it knows, and its workspace. */
	struct hash_table span_sites, statement_sites, unkept_traces, foreign_spans;
	VECTOR(struct span_row) span_rows; /* of the batch, to be written */
	VECTOR(char) span_text;            /* theirs, and of the next */
	int64_t newest_span_row;           /* in the file; -1: not known */
	int64_t emptied_span_row;          /* in the file, to be removed; 0: none */
	VECTOR(uint64_t) span_children;
	size_t spans_stored; /* of the batch */

	int64_t epoch_bytes; /* written since the epoch began */
	char trace_text[TRACE_MAX_FRAMES * 21 + 3];

	/* Called while another process writes: true ends the wait. */
	bool (*give_up)(void *context);
	void *context;
};

/* This process. One thread at a time. */
const struct writer_identity *writer_identity_here(void);

/* Memory, and the identity of this process; opens nothing. False: no memory. */
bool writer_init(struct writer *writer, bool (*give_up)(void *context), void *context);
void writer_free(struct writer *writer);

/* After a fork: this is another process now. */
void writer_reset_identity(struct writer *writer);

/* Returns the same as database_open(); `path` stays while the file is open. */
int writer_open(struct writer *writer, const char *path, const struct database_limits *limits, char **error);
void writer_close(struct writer *writer, bool last);

/* A sentence (malloc'ed) for the error of the call before. */
char *writer_failure(struct writer *writer);

/* Stored rows survive a loss of power from now on. SQLITE_OK or the error. */
int writer_sync(struct writer *writer);

/* Sets how it waits for other writers, after another part changed that. */
void writer_wait_when_busy(struct writer *writer);

/* Between two transactions without a pause: when others want to write, too, leaves
 * them the time to see that the file is free. SQLite's lock has no queue: the thread that
 * released it would be the first to take it again. */
void writer_let_others(struct writer *writer);

/* --- for batch.c, intern.c and place.c ---------------------------------------- */

/* Entries of the writer's tables. */
struct known_thread {
	struct hash key;
	int64_t row; /* 0: not looked up yet */
	char name[20];
};

struct known_series {
	struct hash key;
	int64_t row, epoch;
};

struct known_stack {
	struct hash key;
	int64_t row, epoch;
	uint32_t generation; /* of the code map that its addresses were read with */
};

struct known_query {
	struct hash key;
	int64_t row;
	int64_t statement;       /* that its start published, 0: none */
	int64_t labels, context; /* of its first sample with some, 0: none */
	uint32_t batch, span;    /* its span, valid in that batch only */
};

struct known_labels {
	struct hash key; /* of a number, of several that are combined, or of a trace context */
	int64_t row, epoch;
};

struct known_text {
	struct hash key;
	int64_t row;
};

/* record: what its number stands for; NULL: it is a statement's. */
struct known_span_site {
	struct hash key;
	int64_t row;    /* 0: not looked up yet */
	int64_t newest; /* of a statement: batches up to this one may name it */
	struct span_site_record *record;
};

struct placed_module {
	struct hash key;
	int64_t base; /* 0: nowhere */
};

/* Forgets all rows it knows. */
void writer_forget(struct writer *writer);

/* Forgets rows that retention has removed: of stacks those of earlier epochs, of queries those up
 * to row `query` that are not in the file any more. In the transaction that removes them. */
void writer_forget_before(struct writer *writer, int64_t epoch, int64_t query);

/* The batch has something of a query at these times. `index`: its span; beyond them all: none. */
void writer_widen_span(struct writer *writer, uint32_t index, int64_t first_ns, int64_t last_ns);

/* After an error: keeps what it was, and ends the transaction if one is open. */
void writer_roll_back(struct writer *writer);

/* Ends the transaction: commits what went well, `code` 0, and rolls back otherwise. `code`, or what the
 * commit came to. */
int writer_end(struct writer *writer, int code);

/* Runs a prepared statement without rows and makes it ready again. */
int writer_run(struct writer *writer, enum writer_statement which);

/* First column of the first row, 0 when there is none; negative errors are minus
 * SQLite's code. */
int64_t writer_number(struct writer *writer, enum writer_statement which);

/* The same with SQL that has at most two parameters, and which stays prepared: a literal. */
int writer_run_sql(struct writer *writer, const char *sql, int64_t a, int64_t b);

/* The number that it selects; `otherwise` when there is none. */
int64_t writer_ask_sql(struct writer *writer, const char *sql, int64_t a, int64_t otherwise);

/* Forgets the statements of a connection that is another process's. */
void writer_leave_statements(struct writer *writer);

sqlite3_stmt *writer_statement(struct writer *writer, enum writer_statement which);
void writer_bind_text(sqlite3_stmt *statement, int index, const char *text, size_t size);

#endif
