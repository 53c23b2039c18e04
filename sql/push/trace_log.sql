-- SPDX-License-Identifier: Apache-2.0
-- The samples of the batches after :since up to :until, for trace_log_rows. `stack` becomes trace,
-- symbols and lines.
SELECT
	(SELECT identity FROM state) AS file,
	s.timestamp_ns, p.hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	p.executable AS program,
	p.process_id, iif(r.trace_type = 'MemoryFree', 'MemorySample', r.trace_type) AS trace_type, s.cpu_id, t.thread_id, t.thread_name, q.query_id, x.normalized_query_hash,
	x.query, q.database,
	s.stack AS stack_id,
	s.stack, s.truncated, s.weight, r.period_ns,
	s.size + s.weight * r.period_ns AS value,
	r.unit,
	iif(r.unit = 'bytes', (s.size + s.weight * r.period_ns) / max(s.weight, 1), 0) AS size,
	h.labels AS statement_labels,
	g.labels,
	coalesce(c.otel_trace_id, nullif(h.otel_trace_id, ''), g.otel_trace_id) AS otel_trace_id,
	coalesce(c.otel_span_id, nullif(h.otel_span_id, ''), g.otel_span_id) AS otel_span_id,
	iif(s.span, printf('%016x', s.span), '') AS span_id,
	s.opcode & 4294967295 AS opcode,
	s.wait_ns,
	iif(s.wait, (SELECT w.name FROM wait_causes AS w WHERE w.cause = s.wait & 255), '') AS wait_cause,
	iif(s.wait >> 8, (SELECT w.name FROM wait_objects AS w WHERE w.object = s.wait >> 8), '') AS wait_object,
	iif(r.trace_type IN ('ProgramCPU', 'ProgramOffCPU'), iif(s.query, 'rows', 'transaction'), '') AS outside,
	s.transaction_number,
	s.ptr
FROM batch_samples AS b
CROSS JOIN samples AS s ON s.timestamp_ns = b.timestamp_ns
LEFT JOIN series AS r ON r.id = s.series
LEFT JOIN threads AS t ON t.id = r.thread
LEFT JOIN processes AS p ON p.id = t.process
LEFT JOIN queries AS q ON q.id = s.query AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
LEFT JOIN statements AS x ON x.id = q.statement
LEFT JOIN label_sets AS g ON g.id = s.labels
LEFT JOIN label_sets AS h ON h.id = x.labels
LEFT JOIN trace_contexts AS c ON c.id = s.context
WHERE b.batch > :since AND b.batch <= :until;
