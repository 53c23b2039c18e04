/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes records to the trace file, one transaction per batch. Belongs to one thread, the flusher.
 * The connection and the transaction are here; each kind of row has a part with its statements and
 * its state of the file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "handover/identity.h"
#include "modules/module_history.h"
#include "store/write/columns.h"
#include "store/file/database.h"
#include "store/write/prepared.h"

/* The most samples and other records in one transaction. */
#define WRITER_BATCH 16384

/* Another process, whose records this writer stores. */
struct writer_other {
	const struct module_log *log; /* its own log, with at most so many bytes */
	size_t log_size;
	struct module_history modules; /* the content read from the log, */
	uint32_t generation;           /* up to this generation */
	void *runs;                    /* a copy of collect/open_runs.h, or zeros */
};

/* A rarely used statement is prepared at its first use. */
struct kept_statement {
	const char *sql; /* a literal, identified by its address */
	sqlite3_stmt *statement;
};

struct writer {
	/* The connection. */
	struct database database;
	const char *path;           /* of the open file; belongs to the caller */
	char *failure;              /* writer_failure() */
	int64_t contended_until_ns; /* others have recently been seen writing */
	struct contention_limit contention;
	VECTOR(struct kept_statement) kept; /* of writer_run_sql() */

	/* The process whose records it writes. */
	struct writer_identity identity;
	struct writer_other *other; /* NULL: the records belong to this process */

	/* The state of the file after the last transaction. */
	int64_t file_identity, removals, bytecode_removals, epoch;
	int64_t epoch_bytes; /* written since the epoch began */

	/* The transaction. */
	uint32_t batch;          /* its number; a table's entry with this number belongs to it */
	int64_t stored_batch;    /* its row in the file's table of batches */
	size_t bytes, rewritten; /* its approximate size in the file, and that of existing rows */
	struct {
		struct prepared begin, commit, rollback, state, add_batch, begin_epoch;
	} sql;

	/* The kinds of rows: each part has its statements, its tables of rows and its file. */
	struct writer_parts *parts;
	struct thread_writer *threads;
	struct stack_writer *stacks;
	struct module_writer *modules;
	struct call_stack_writer *call_stacks;
	struct text_writer *texts;
	struct query_writer *queries;
	struct sample_writer *samples;
	struct label_writer *labels;
	struct span_writer *spans;
	struct span_row_writer *span_rows;
	struct foreign_span_writer *foreign_spans;
	struct span_site_writer *span_sites;
	struct counter_writer *counters;
	struct lock_writer *locks;
	struct checkpoint_writer *checkpoints;
	struct connection_writer *connections;
	struct page_sum_writer *page_sums;
	struct bytecode_writer *bytecode;
	struct loss_writer *losses;
};

/* The statements of the transaction. */
void writer_init_transaction(struct writer *writer);

/* A sentence (malloc'ed) for the error of the previous call. */
char *writer_failure(struct writer *writer);

/* Makes stored rows survive a loss of power. SQLITE_OK or the error. */
int writer_sync(struct writer *writer);

/* For struct made_table: each row is a pointer to the writer, which is the table's data. */
int writer_rows(sqlite3 *db, void *writer, void *memory, void *rows, uint64_t used, char **error);

/* Sets how it waits for other writers, after another part has changed that. */
void writer_wait_when_busy(struct writer *writer);

/* Between two transactions without a pause: if other processes want to write, gives them time to
 * see that the file is free. SQLite's lock has no queue, so the thread that released it would be
 * the first to take it again. */
void writer_let_others(struct writer *writer);

/* --- for its parts ------------------------------------------------------------- */

/* After an error: remembers it, and ends the transaction if one is open. */
void writer_roll_back(struct writer *writer);

/* Ends the transaction: commits if `code` is 0, else rolls back. Returns `code`, or the result of the
 * commit. */
int writer_end(struct writer *writer, int code);

/* Prepares it if necessary, and begins to bind its parameters. A statement that cannot be prepared takes no
 * values; running it returns the error. */
struct prepared *writer_bind(struct writer *writer, struct prepared *prepared);

/* Runs a statement without rows and resets it. SQLITE_OK or the error. */
int writer_run(struct writer *writer, struct prepared *prepared);

/* The first column of the first row; 0: no row; negative: minus SQLite's code. */
int64_t writer_number(struct writer *writer, struct prepared *prepared);

/* The number of the row that an INSERT makes, or minus SQLite's code. */
int64_t writer_insert(struct writer *writer, struct prepared *prepared);

/* sqlite3_step(); the caller reads the row and resets the statement. */
int writer_step(struct writer *writer, struct prepared *prepared);

/* Runs SQL with at most two parameters, and keeps it prepared. It must be a literal. */
int writer_run_sql(struct writer *writer, const char *sql, int64_t a, int64_t b);

/* The number that it selects; `otherwise` if there is no row. */
int64_t writer_ask_sql(struct writer *writer, const char *sql, int64_t a, int64_t otherwise);
