-- SPDX-License-Identifier: Apache-2.0
-- The spans of a file with the columns that export/spans.sql, push/spans.sql and push/span_log.sql need, their rows
-- of span_batches, and the rows of their processes. Like span_log in store_schema.sql, without the slow columns. (Its
-- span_rows cannot use ->>.) query: a row of queries, 0: none.
CREATE TEMP VIEW span_texts AS
SELECT
	r.batch, r.span, r.query,
	coalesce(t.process, 0) AS process,
	r.start_ns AS start_time_ns,
	r.start_ns + r.duration_ns AS finish_time_ns,
	p.hostname, p.executable, p.process_id, t.thread_id, t.thread_name,
	printf('%016x%016x', r.trace_hi, r.trace_lo) AS trace_id,
	printf('%016x', r.span) AS span_id,
	iif(r.parent, printf('%016x', r.parent), '') AS parent_span_id,
	trim(s.name || iif(s.wait, (
		SELECT 'wait: ' || w.name || coalesce((SELECT ' (' || o.name || ')' FROM wait_objects AS o WHERE o.object = s.wait >> 8), '')
		FROM wait_causes AS w WHERE w.cause = s.wait & 255), '') || ' ' || coalesce(y.query,
		(SELECT x.query FROM statement_counters AS c JOIN statements AS x ON x.id = c.statement
		 WHERE c.normalized_query_hash = s.statement AND s.statement LIMIT 1), '')) AS operation_name,
	r.batch_flags & 1 AND r.parent = r.batch_parent AS is_server,
	r.flags >> 1 & 3 AS status,
	r.flags & 1 AS unended,
	q.query_id,
	'{' || coalesce((SELECT group_concat(note) FROM span_notes AS n WHERE n.span = r.span AND NOT n.is_event), '') || '}' AS attribute,
	'[' || coalesce((SELECT group_concat(note) FROM span_notes AS n WHERE n.span = r.span AND n.is_event), '') || ']' AS events,
	s.file, s.line
FROM (
	SELECT
		b.id AS batch,
		p.trace_hi, p.trace_lo,
		b.first_span + e.key AS span,
		iif(e.value ->> 1, b.first_span + e.key - (e.value ->> 1), p.parent) AS parent,
		e.value ->> 0 AS site,
		b.start_ns + (e.value ->> 2) AS start_ns,
		e.value ->> 3 AS duration_ns,
		coalesce(e.value ->> 5, 0) AS flags,
		coalesce(e.value ->> 6, 0) AS query,
		b.thread,
		b.flags AS batch_flags,
		b.parent AS batch_parent
	FROM span_batches AS b
	JOIN span_parts AS p ON p.batch = b.id
	CROSS JOIN json_each(b.spans) AS e
	WHERE e.type = 'array') AS r
LEFT JOIN span_sites AS s ON s.id = r.site
LEFT JOIN threads AS t ON t.id = r.thread
LEFT JOIN processes AS p ON p.id = t.process
LEFT JOIN queries AS q ON q.id = r.query AND r.query
LEFT JOIN statements AS y ON y.id = q.statement;
