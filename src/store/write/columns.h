/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of sql/schema/store_schema.sql that the writer fills: _(name, value) or _(name, type, value),
 * where the value is C in the files that store the row (write/sample_rows.c, write/query_rows.c,
 * write/statements.c).
 *
 * A new column is one at the end of its table and of its list: a file that an older version made gets new
 * columns after its own.
 */
#pragma once

/* clang-format off */

/* samples.span: the span that contains the sample, 0: none. samples.size is what the value has in
 * addition to weight × period_ns, 0 for samples that a timer took. Its name is that of version 1,
 * in which it was always 0, so older rows read the same, and an older process can continue to
 * write to the file. */
#define SAMPLE_COLUMNS(_) \
	_(series, sample->series) \
	_(query, query_of(writer, sample)) \
	_(stack, sample->stack) \
	_(cpu_id, sample->cpu_id) \
	_(weight, sample->weight) \
	_(truncated, sample->truncated) \
	_(size, sample->beyond) \
	_(labels, sample->labels) \
	_(context, sample->context) \
	_(opcode, sample->opcode) \
	_(wait_ns, sample->wait_ns) \
	_(wait, sample->wait) \
	_(span, (int64_t)sample->request_span) \
	_(transaction_number, sample->transaction) \
	_(ptr, sample->pointer) \
	_(call_stack, sample->call_stack)

/* initial, statement, library, parent: rows of queries, statements, libraries and queries; 0: none.
 * session: the connection's number. */
#define QUERY_COLUMNS(_) \
	_(initial, INTEGER, rows->initial) \
	_(statement, INTEGER, rows->statement) \
	_(query_start_ns, INTEGER, record->start_realtime_ns) \
	_(query_duration_ns, INTEGER, record->duration_ns) \
	_(cpu_time_ns, INTEGER, record->cpu_time_ns) \
	_(database, TEXT, texts->database) \
	_(thread_id, INTEGER, record->thread_id) \
	_(exception_code, INTEGER, record->exception_code) \
	_(exception, TEXT, texts->exception) \
	_(result_rows, INTEGER, record->result_rows) \
	_(vm_steps, INTEGER, record->vm_steps) \
	_(fullscan_steps, INTEGER, record->fullscan_steps) \
	_(sorts, INTEGER, record->sorts) \
	_(autoindexes, INTEGER, record->autoindexes) \
	_(memory_usage, INTEGER, record->memory_usage) \
	_(samples_cpu, INTEGER, record->samples[SAMPLE_CPU]) \
	_(samples_real, INTEGER, record->samples[SAMPLE_REAL]) \
	_(weight_cpu, INTEGER, record->weights[SAMPLE_CPU]) \
	_(weight_real, INTEGER, record->weights[SAMPLE_REAL]) \
	_(samples_dropped, INTEGER, record->samples_dropped) \
	_(samples_truncated, INTEGER, record->samples_truncated) \
	_(prepare_time_ns, INTEGER, record->prepare_time_ns) \
	_(worker_cpu_time_ns, INTEGER, record->worker_cpu_time_ns) \
	_(library, INTEGER, rows->library) \
	_(expanded_query, TEXT, texts->expanded) \
	_(session, INTEGER, query_key_session(record->query)) \
	_(parent, INTEGER, rows->parent) \
	_(batch, INTEGER, writer->stored_batch) \
	_(execution_ns, INTEGER, record->execution_time_ns) \
	_(threads, INTEGER, record->threads) \
	_(labels, INTEGER, rows->labels) \
	_(context, INTEGER, rows->context) \
	_(lock_wait_ns, INTEGER, record->waits[WAIT_LOCK_NS]) \
	_(io_read_ns, INTEGER, record->waits[WAIT_READ_NS]) \
	_(io_write_ns, INTEGER, record->waits[WAIT_WRITE_NS]) \
	_(io_sync_ns, INTEGER, record->waits[WAIT_SYNC_NS]) \
	_(mutex_wait_ns, INTEGER, record->waits[WAIT_MUTEX_NS]) \
	_(sleep_ns, INTEGER, record->waits[WAIT_SLEEP_NS]) \
	_(other_wait_ns, INTEGER, record->waits[WAIT_OTHER_NS]) \
	_(run_delay_ns, INTEGER, record->account.run_delay_ns) \
	_(rest_ns, INTEGER, record->rest_ns) \
	_(reads, INTEGER, record->waits[WAIT_READS]) \
	_(read_bytes, INTEGER, record->waits[WAIT_READ_BYTES]) \
	_(writes, INTEGER, record->waits[WAIT_WRITES]) \
	_(write_bytes, INTEGER, record->waits[WAIT_WRITTEN_BYTES]) \
	_(syncs, INTEGER, record->waits[WAIT_SYNCS]) \
	_(major_faults, INTEGER, record->account.major_faults) \
	_(minor_faults, INTEGER, record->account.minor_faults) \
	_(voluntary_switches, INTEGER, record->account.voluntary_switches) \
	_(involuntary_switches, INTEGER, record->account.involuntary_switches) \
	_(program, INTEGER, record->bytecode) \
	_(worker_wait_ns, INTEGER, record->worker_wait_ns) \
	_(profiler_cost_ns, INTEGER, record->profiler_cost_ns) \
	_(call_stack, INTEGER, rows->call_stack) \
	_(execution_time_error_ns, INTEGER, record->execution_error_ns)

/* The columns of statement_counters and statement_stats, where a row is added to the one that the file has:
 *
 *   KEY(name, type, value)             identifies the row
 *   SUM(name, type, value)             the sum of both
 *   PART(i)                            the same, column runs_i, of the table alone: a bucket of statement_counts.h
 *   LEAST(name, type, value), MOST(…)  the lesser, the greater; a minimum is NULL if there is none
 *   SHOWN(name, type, value)           a column of the virtual table, which the view computes
 *
 * statements.c writes two columns more: statement, which never changes, and batch, which is the newest. */
#define STATEMENT_SUM(which) (int64_t)stats->counts->sums[STATEMENT_##which]
#define STATEMENT_MOST(which) (int64_t)stats->counts->most[which]
#define STATEMENT_LEAST(which) (int64_t)statement_least(stats->counts, which)

#define STATEMENT_COLUMNS(KEY, SUM, PART, LEAST, MOST, SHOWN) \
	KEY(normalized_query_hash, INTEGER, (int64_t)stats->hash) \
	SHOWN(query, TEXT, stats->text) \
	KEY(database, TEXT, stats->database) \
	KEY(program, TEXT, program) \
	SUM(calls, INTEGER, STATEMENT_SUM(CALLS)) \
	SUM(errors, INTEGER, STATEMENT_SUM(ERRORS)) \
	SUM(rows, INTEGER, STATEMENT_SUM(ROWS)) \
	SUM(execution_time_ns, INTEGER, STATEMENT_SUM(EXECUTION_NS)) \
	SUM(cpu_time_ns, INTEGER, STATEMENT_SUM(CPU_NS)) \
	SUM(cpu_time_estimated_ns, INTEGER, STATEMENT_SUM(CPU_ESTIMATED_NS)) \
	SUM(duration_ns, INTEGER, STATEMENT_SUM(DURATION_NS)) \
	LEAST(min_ns, INTEGER, STATEMENT_LEAST(LEAST_EXECUTION_NS)) \
	MOST(max_ns, INTEGER, STATEMENT_MOST(MOST_EXECUTION_NS)) \
	SHOWN(histogram, TEXT, histogram) \
	SUM(execution_time_square, REAL, stats->counts->squares[SQUARE_EXECUTION]) \
	SUM(cpu_time_square, REAL, stats->counts->squares[SQUARE_CPU]) \
	SUM(nested_time_ns, INTEGER, STATEMENT_SUM(NESTED_NS)) \
	SUM(nested_cpu_time_ns, INTEGER, STATEMENT_SUM(NESTED_CPU_NS)) \
	SUM(prepares, INTEGER, STATEMENT_SUM(PREPARES)) \
	SUM(prepare_time_ns, INTEGER, STATEMENT_SUM(PREPARE_NS)) \
	SUM(vm_steps, INTEGER, STATEMENT_SUM(VM_STEPS)) \
	SUM(fullscan_steps, INTEGER, STATEMENT_SUM(FULLSCAN_STEPS)) \
	SUM(sorts, INTEGER, STATEMENT_SUM(SORTS)) \
	SUM(autoindexes, INTEGER, STATEMENT_SUM(AUTOINDEXES)) \
	SUM(reprepares, INTEGER, STATEMENT_SUM(REPREPARES)) \
	LEAST(first_seen_ns, INTEGER, STATEMENT_LEAST(LEAST_SEEN_NS)) \
	MOST(last_seen_ns, INTEGER, STATEMENT_MOST(MOST_SEEN_NS)) \
	PART(0) PART(1) PART(2) PART(3) PART(4) PART(5) PART(6) PART(7) PART(8) PART(9) PART(10) PART(11) PART(12) \
	PART(13) PART(14) PART(15) PART(16) PART(17) PART(18) PART(19) PART(20) PART(21) PART(22) PART(23)

/* clang-format on */
