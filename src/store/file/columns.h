/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of trace_log, query_log and statement_stats, one line each. From these lists follow
 *   - the tables `samples`, `queries` and `statement_counters` and the three views in
 * sql/schema/store_schema.sql: the target `store_schema` writes them there (file/make_schema.c), and the test
 * store_schema fails while they differ;
 *   - the statements that store a record, and their values (write/sample_rows.c, write/query_rows.c,
 *     write/statements.c);
 *   - the virtual tables of the `system` schema (src/sql/tables.c).
 *
 * A new column is one line at the end of its list: a file that an older version made
 * gets new columns behind the ones that it has. Behind its name: `not sent`, if ClickHouse's
 * table does not have it (tests/sql/test_columns.py).
 *
 *   STORED(name, type, definition, flags, value)  a column of the table and the view
 *   FILED(name, type, definition, value)          a column of the table alone
 *   SHOWN(name, type, flags, expression)          a column of the view alone
 *   MADE(name, type, flags)                       a column of the virtual table, made from
 *                                                 `trace`; the view computes its own
 *
 * and of statement_stats alone, where a row is added to the one that the file has:
 *
 *   KEY(name, type, value)                        identifies the row
 *   SUM(name, type, value)                        the sum of both
 *   PART(i)                                       the same, column runs_i, of the table alone
 *   LEAST(name, type, value), MOST(…)             the lesser, the greater
 *
 * type: INTEGER, REAL or TEXT. definition: SQL behind the type in CREATE TABLE. value: C in
 * the files of write/ above. flags: of src/sql/tables.h. expression: SQL over the view's joins,
 * which for query_log are here, too.
 */
#pragma once

#define COLUMN_ZERO "NOT NULL DEFAULT 0"
#define COLUMN_EMPTY "NOT NULL DEFAULT ''"

/* clang-format off */

/* The labels of a row of samples or queries (g) and those of its statement's comments (h), which
 * take precedence. */
#define LABELS_SHOWN \
	"CASE WHEN h.id IS NULL THEN coalesce(g.labels, '{}') WHEN g.id IS NULL THEN h.labels ELSE" \
	" (SELECT '{' || group_concat(v.member) || '}' FROM label_values AS v WHERE v.labels = h.id OR (v.labels = g.id" \
	" AND NOT EXISTS (SELECT 1 FROM label_values AS w WHERE w.labels = h.id AND w.key = v.key))) END"
#define CONTEXT_SHOWN(id) "coalesce(c." id ", nullif(h." id ", ''), g." id ", '')"

/* samples.span: the span that contains the sample, 0: none. samples.size is what the value has in
 * addition to weight × period_ns, 0 for samples that a timer took. Its name is that of version 1,
 * in which it was always 0, so older rows read the same, and an older process can continue to
 * write to the file. */
#define TRACE_LOG_COLUMNS(STORED, FILED, SHOWN, MADE) \
	SHOWN(hostname, TEXT, 0, "p.hostname") \
	SHOWN(process_id, INTEGER, 0, "p.process_id") \
	SHOWN(event_date, /* not sent */ TEXT, COLUMN_TIME, "strftime('%Y-%m-%d', s.timestamp_ns / 1000000000, 'unixepoch')") \
	SHOWN(event_time, /* not sent */ TEXT, COLUMN_TIME, "strftime('%Y-%m-%d %H:%M:%S', s.timestamp_ns / 1000000000, 'unixepoch')") \
	SHOWN(event_time_microseconds, /* not sent */ TEXT, COLUMN_TIME, "strftime('%Y-%m-%d %H:%M:%S', s.timestamp_ns / 1000000000, 'unixepoch')" \
	      " || printf('.%06d', s.timestamp_ns % 1000000000 / 1000)") \
	SHOWN(timestamp_ns, INTEGER, COLUMN_SEARCHED | COLUMN_ORDERED | COLUMN_KEY, "s.timestamp_ns") \
	SHOWN(trace_type, TEXT, 0, "r.trace_type") \
	FILED(series, INTEGER, "NOT NULL", sample->series) \
	FILED(query, INTEGER, "NOT NULL", query_of(writer, sample)) \
	FILED(stack, INTEGER, "NOT NULL", sample->stack) \
	STORED(cpu_id, INTEGER, "NOT NULL", 0, sample->cpu_id) \
	SHOWN(thread_id, INTEGER, 0, "t.thread_id") \
	SHOWN(thread_name, TEXT, 0, "t.thread_name") \
	SHOWN(query_id, TEXT, COLUMN_SEARCHED, "q.query_id") \
	SHOWN(stack_id, INTEGER, 0, "s.stack") \
	SHOWN(trace, TEXT, 0, "k.trace") \
	FILED(weight, INTEGER, "NOT NULL", sample->weight) \
	STORED(truncated, INTEGER, "NOT NULL", 0, sample->truncated) \
	SHOWN(weight, INTEGER, 0, "s.weight") \
	SHOWN(period_ns, INTEGER, 0, "r.period_ns") \
	FILED(size, INTEGER, "NOT NULL", sample->beyond) \
	SHOWN(size, INTEGER, 0, "CAST(iif(r.unit = 'bytes', s.size + s.weight * r.period_ns, 0) AS INTEGER)") \
	SHOWN(session_id, /* not sent */ INTEGER, 0, "q.session") \
	SHOWN(value, INTEGER, 0, "CAST(s.size + s.weight * r.period_ns AS INTEGER)") \
	SHOWN(unit, TEXT, 0, "r.unit") \
	FILED(labels, INTEGER, COLUMN_ZERO, sample->labels) \
	SHOWN(labels, TEXT, 0, LABELS_SHOWN) \
	FILED(context, INTEGER, COLUMN_ZERO, sample->context) \
	SHOWN(otel_trace_id, TEXT, 0, CONTEXT_SHOWN("otel_trace_id")) \
	SHOWN(otel_span_id, TEXT, 0, CONTEXT_SHOWN("otel_span_id")) \
	FILED(opcode, INTEGER, COLUMN_ZERO, sample->opcode) \
	SHOWN(opcode, INTEGER, 0, "nullif(s.opcode & 4294967295, 0)") \
	MADE(symbols, TEXT, COLUMN_HIDDEN | COLUMN_SYMBOLS) \
	MADE(lines, TEXT, COLUMN_HIDDEN | COLUMN_LINES) \
	STORED(wait_ns, INTEGER, COLUMN_ZERO, 0, sample->wait_ns) \
	FILED(wait, INTEGER, COLUMN_ZERO, sample->wait) \
	SHOWN(wait_cause, TEXT, 0, "iif(s.wait, (SELECT w.name FROM wait_causes AS w WHERE w.cause = s.wait & 255), '')") \
	SHOWN(wait_object, TEXT, 0, "iif(s.wait >> 8, (SELECT w.name FROM wait_objects AS w WHERE w.object = s.wait >> 8), '')") \
	FILED(span, INTEGER, COLUMN_ZERO, (int64_t)sample->request_span) \
	SHOWN(span_id, TEXT, 0, "iif(s.span, printf('%016x', s.span), '')") \
	SHOWN(interval_ns, /* not sent */ INTEGER, 0, "CAST(r.period_ns * r.stretch AS INTEGER)") \
	SHOWN(trigger_opcode, /* not sent */ INTEGER, 0, "nullif(s.opcode >> 32, 0) - 1") \
	SHOWN(outside, TEXT, 0, "iif(r.trace_type IN ('ProgramCPU', 'ProgramOffCPU'), iif(s.query, 'rows', 'transaction'), '')") \
	STORED(transaction_number, INTEGER, COLUMN_ZERO, 0, sample->transaction)

/* execution_ns: missing in files before version 4; the view then shows the duration. initial,
 * statement, library, parent: rows of queries, statements, libraries and queries; 0: none.
 * session: the connection's number. */
#define QUERY_LOG_COLUMNS(STORED, FILED, SHOWN) \
	SHOWN(query_id, TEXT, COLUMN_SEARCHED | COLUMN_KEY, "q.query_id") \
	SHOWN(initial_query_id, TEXT, 0, "i.query_id") \
	SHOWN(type, TEXT, 0, "CASE WHEN NOT q.finished THEN 'QueryStart' WHEN q.exception_code = 0 THEN 'QueryFinish' ELSE 'ExceptionWhileProcessing' END") \
	SHOWN(query_start_time_microseconds, /* not sent */ TEXT, COLUMN_TIME | COLUMN_KEY, "strftime('%Y-%m-%d %H:%M:%S', q.query_start_ns / 1000000000, 'unixepoch')" \
	      " || printf('.%06d', q.query_start_ns % 1000000000 / 1000)") \
	FILED(initial, INTEGER, COLUMN_ZERO, rows->initial) \
	FILED(statement, INTEGER, COLUMN_ZERO, rows->statement) \
	FILED(query_start_ns, INTEGER, COLUMN_ZERO, record->start_realtime_ns) \
	STORED(query_duration_ns, INTEGER, COLUMN_ZERO, COLUMN_KEY, record->duration_ns) \
	STORED(cpu_time_ns, INTEGER, COLUMN_ZERO, 0, record->cpu_time_ns) \
	SHOWN(query, TEXT, 0, "x.query") \
	SHOWN(normalized_query_hash, INTEGER, 0, "x.normalized_query_hash") \
	STORED(database, TEXT, COLUMN_EMPTY, 0, texts->database) \
	STORED(thread_id, INTEGER, COLUMN_ZERO, COLUMN_KEY, record->thread_id) \
	STORED(exception_code, INTEGER, COLUMN_ZERO, 0, record->exception_code) \
	STORED(exception, TEXT, COLUMN_EMPTY, 0, texts->exception) \
	STORED(result_rows, INTEGER, COLUMN_ZERO, 0, record->result_rows) \
	STORED(vm_steps, INTEGER, COLUMN_ZERO, 0, record->vm_steps) \
	STORED(fullscan_steps, INTEGER, COLUMN_ZERO, 0, record->fullscan_steps) \
	STORED(sorts, INTEGER, COLUMN_ZERO, 0, record->sorts) \
	STORED(autoindexes, INTEGER, COLUMN_ZERO, 0, record->autoindexes) \
	STORED(memory_usage, INTEGER, COLUMN_ZERO, 0, record->memory_usage) \
	STORED(samples_cpu, INTEGER, COLUMN_ZERO, 0, record->samples[SAMPLE_CPU]) \
	STORED(samples_real, INTEGER, COLUMN_ZERO, 0, record->samples[SAMPLE_REAL]) \
	STORED(weight_cpu, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->weights[SAMPLE_CPU]) \
	STORED(weight_real, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->weights[SAMPLE_REAL]) \
	STORED(samples_dropped, INTEGER, COLUMN_ZERO, 0, record->samples_dropped) \
	STORED(samples_truncated, INTEGER, COLUMN_ZERO, 0, record->samples_truncated) \
	STORED(prepare_time_ns, INTEGER, COLUMN_ZERO, 0, record->prepare_time_ns) \
	STORED(worker_cpu_time_ns, INTEGER, COLUMN_ZERO, 0, record->worker_cpu_time_ns) \
	FILED(library, INTEGER, COLUMN_ZERO, rows->library) \
	SHOWN(library_version, TEXT, 0, "coalesce(l.version, '')") \
	SHOWN(library_path, /* not sent */ TEXT, 0, "coalesce(l.path, '')") \
	STORED(expanded_query, /* not sent */ TEXT, COLUMN_EMPTY, 0, texts->expanded) \
	FILED(session, INTEGER, COLUMN_ZERO, query_key_session(record->query)) \
	SHOWN(session_id, /* not sent */ INTEGER, 0, "q.session") \
	FILED(parent, INTEGER, COLUMN_ZERO, rows->parent) \
	SHOWN(parent_query_id, TEXT, 0, "coalesce(p.query_id, '')") \
	FILED(batch, INTEGER, COLUMN_ZERO, writer->stored_batch) \
	FILED(execution_ns, INTEGER, "DEFAULT NULL", record->execution_time_ns) \
	SHOWN(execution_time_ns, INTEGER, 0, "CAST(coalesce(q.execution_ns, q.query_duration_ns) AS INTEGER)") \
	STORED(threads, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->threads) \
	FILED(labels, INTEGER, COLUMN_ZERO, rows->labels) \
	SHOWN(labels, TEXT, 0, LABELS_SHOWN) \
	FILED(context, INTEGER, COLUMN_ZERO, rows->context) \
	SHOWN(otel_trace_id, TEXT, 0, CONTEXT_SHOWN("otel_trace_id")) \
	SHOWN(otel_span_id, TEXT, 0, CONTEXT_SHOWN("otel_span_id")) \
	STORED(lock_wait_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_LOCK_NS]) \
	STORED(io_read_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_READ_NS]) \
	STORED(io_write_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_WRITE_NS]) \
	STORED(io_sync_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_SYNC_NS]) \
	STORED(mutex_wait_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_MUTEX_NS]) \
	STORED(sleep_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_SLEEP_NS]) \
	STORED(other_wait_ns, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_OTHER_NS]) \
	STORED(run_delay_ns, INTEGER, COLUMN_ZERO, 0, record->account.run_delay_ns) \
	STORED(rest_ns, INTEGER, COLUMN_ZERO, 0, record->rest_ns) \
	STORED(reads, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_READS]) \
	STORED(read_bytes, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_READ_BYTES]) \
	STORED(writes, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_WRITES]) \
	STORED(write_bytes, INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_WRITTEN_BYTES]) \
	STORED(syncs, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->waits[WAIT_SYNCS]) \
	STORED(major_faults, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->account.major_faults) \
	STORED(minor_faults, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->account.minor_faults) \
	STORED(voluntary_switches, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->account.voluntary_switches) \
	STORED(involuntary_switches, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->account.involuntary_switches) \
	FILED(program, INTEGER, COLUMN_ZERO, record->bytecode) \
	SHOWN(plan_hash, INTEGER, 0, "CAST(coalesce(u.plan_hash, 0) AS INTEGER)") \
	STORED(worker_wait_ns, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->worker_wait_ns) \
	STORED(profiler_cost_ns, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->profiler_cost_ns) \
	FILED(call_stack, INTEGER, COLUMN_ZERO, rows->call_stack) \
	SHOWN(caller, TEXT, 0, "coalesce(b.caller, '')") \
	SHOWN(caller_function, TEXT, 0, "coalesce(b.caller_function, '')") \
	SHOWN(call_stack_id, /* not sent */ INTEGER, 0, "q.call_stack") \
	STORED(execution_time_error_ns, /* not sent */ INTEGER, COLUMN_ZERO, 0, record->execution_error_ns) \
	SHOWN(process_id, INTEGER, 0, "o.process_id") \
	SHOWN(program, TEXT, 0, "o.executable")

/* The tables that query_log joins to `queries AS q`. They are outer joins, so those that a query
 * does not need cost nothing. */
#define QUERY_LOG_JOINS(JOIN) \
	JOIN("queries AS i ON i.id = q.initial") \
	JOIN("queries AS p ON p.id = q.parent") \
	JOIN("statements AS x ON x.id = q.statement") \
	JOIN("libraries AS l ON l.id = q.library") \
	JOIN("label_sets AS g ON g.id = q.labels") \
	JOIN("label_sets AS h ON h.id = x.labels") \
	JOIN("trace_contexts AS c ON c.id = q.context") \
	JOIN("programs AS u ON u.id = q.program") \
	JOIN("call_stacks AS b ON b.id = q.call_stack") \
	JOIN("processes AS o ON o.id = q.process")

/* runs_0, runs_1, …: the buckets of statement_counts.h. */
#define STATEMENT_PARTS(PART) PART(0) STATEMENT_LATER_PARTS(PART)
#define STATEMENT_LATER_PARTS(PART) \
	PART(1) PART(2) PART(3) PART(4) PART(5) PART(6) PART(7) PART(8) PART(9) PART(10) PART(11) PART(12) \
	PART(13) PART(14) PART(15) PART(16) PART(17) PART(18) PART(19) PART(20) PART(21) PART(22) PART(23)
#define STATEMENT_LATER_PART(i) " || ',' || c.runs_" #i
#define STATEMENT_SUM(which) (int64_t)stats->counts->sums[STATEMENT_##which]
#define STATEMENT_MOST(which) (int64_t)stats->counts->most[which]
#define STATEMENT_LEAST(which) (int64_t)statement_least(stats->counts, which)

/* statement: a row of statements. A minimum is NULL if there is none. statements_sql.h writes
 * statement, which never changes, and batch, which is the newest. */
#define STATEMENT_STATS_COLUMNS(KEY, FILED, SUM, PART, LEAST, MOST, SHOWN) \
	KEY(normalized_query_hash, INTEGER, (int64_t)stats->hash) \
	SHOWN(query, TEXT, "x.query", stats->text) \
	KEY(database, TEXT, stats->database) \
	KEY(program, TEXT, program) \
	FILED(statement, INTEGER, "NOT NULL", statement) \
	SUM(calls, INTEGER, STATEMENT_SUM(CALLS)) \
	SUM(errors, INTEGER, STATEMENT_SUM(ERRORS)) \
	SUM(rows, INTEGER, STATEMENT_SUM(ROWS)) \
	SUM(execution_time_ns, INTEGER, STATEMENT_SUM(EXECUTION_NS)) \
	SUM(cpu_time_ns, INTEGER, STATEMENT_SUM(CPU_NS)) \
	SUM(cpu_time_estimated_ns, /* not sent */ INTEGER, STATEMENT_SUM(CPU_ESTIMATED_NS)) \
	SUM(duration_ns, INTEGER, STATEMENT_SUM(DURATION_NS)) \
	LEAST(min_ns, INTEGER, STATEMENT_LEAST(LEAST_EXECUTION_NS)) \
	MOST(max_ns, INTEGER, STATEMENT_MOST(MOST_EXECUTION_NS)) \
	SHOWN(histogram, TEXT, "'[' || c.runs_0" STATEMENT_LATER_PARTS(STATEMENT_LATER_PART) " || ']'", histogram) \
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
	SUM(reprepares, /* not sent */ INTEGER, STATEMENT_SUM(REPREPARES)) \
	LEAST(first_seen_ns, INTEGER, STATEMENT_LEAST(LEAST_SEEN_NS)) \
	MOST(last_seen_ns, INTEGER, STATEMENT_MOST(MOST_SEEN_NS)) \
	STATEMENT_PARTS(PART) \
	FILED(batch, INTEGER, COLUMN_ZERO, writer->counters->batch)

/* session_id: the sets belong to the host, not to a session. */
#define LABEL_HISTORY_COLUMNS(SHOWN) \
	SHOWN(hostname, TEXT, COLUMN_KEY, "p.hostname") \
	SHOWN(process_id, INTEGER, COLUMN_KEY, "p.process_id") \
	SHOWN(trampoline, TEXT, COLUMN_KEY, "printf('qp_label_trampoline_%d', u.trampoline)") \
	SHOWN(address, INTEGER, 0, "u.address") \
	SHOWN(key, TEXT, COLUMN_KEY, "v.key") \
	SHOWN(value, TEXT, COLUMN_MIXED, "v.value") \
	SHOWN(from_ns, INTEGER, COLUMN_KEY, "u.from_ns") \
	SHOWN(until_ns, INTEGER, 0, "nullif(u.until_ns, 0)") \
	SHOWN(session_id, INTEGER, 0, "0")

/* clang-format on */
