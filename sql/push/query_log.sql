-- SPDX-License-Identifier: Apache-2.0
-- The queries that began or ended in the batches after :since up to :until, for query_log_rows. A query without known
-- data follows when it has some.
SELECT
	(SELECT identity FROM state) AS file,
	q.id AS run,
	q.batch AS version,
	q.query_start_ns, o.hostname,
	coalesce(:service, fileName(o.executable)) AS service,
	o.executable AS program,
	o.process_id, q.query_id,
	i.query_id AS initial_query_id,
	p.query_id AS parent_query_id,
	CASE WHEN NOT q.finished THEN 'QueryStart' WHEN q.exception_code = 0 THEN 'QueryFinish'
	     ELSE 'ExceptionWhileProcessing' END AS type,
	x.normalized_query_hash, x.query, q.database, q.thread_id, q.exception_code, q.exception, q.query_duration_ns,
	coalesce(q.execution_ns, q.query_duration_ns) AS execution_time_ns,
	q.cpu_time_ns, q.worker_cpu_time_ns, q.prepare_time_ns, q.lock_wait_ns, q.io_read_ns, q.io_write_ns,
	q.io_sync_ns, q.mutex_wait_ns, q.sleep_ns, q.other_wait_ns, q.run_delay_ns, q.rest_ns, q.result_rows,
	q.read_bytes, q.write_bytes, q.memory_usage, q.vm_steps, q.fullscan_steps, q.sorts, q.autoindexes,
	q.samples_cpu, q.samples_real, q.samples_dropped, q.samples_truncated,
	l.version AS library_version,
	u.plan_hash, b.caller, b.caller_function,
	h.labels AS statement_labels,
	g.labels,
	coalesce(c.otel_trace_id, nullif(h.otel_trace_id, ''), g.otel_trace_id) AS otel_trace_id,
	coalesce(c.otel_span_id, nullif(h.otel_span_id, ''), g.otel_span_id) AS otel_span_id
FROM queries AS q
LEFT JOIN processes AS o ON o.id = q.process
LEFT JOIN queries AS i ON i.id = q.initial
LEFT JOIN queries AS p ON p.id = q.parent
LEFT JOIN statements AS x ON x.id = q.statement
LEFT JOIN libraries AS l ON l.id = q.library
LEFT JOIN label_sets AS g ON g.id = q.labels
LEFT JOIN label_sets AS h ON h.id = x.labels
LEFT JOIN trace_contexts AS c ON c.id = q.context
LEFT JOIN programs AS u ON u.id = q.program
LEFT JOIN call_stacks AS b ON b.id = q.call_stack
WHERE q.batch > :since AND q.batch <= :until AND q.id > 0 AND q.query_start_ns > 0;
