-- SPDX-License-Identifier: Apache-2.0
-- The spans in the rows of span_batches after :since up to :until, in the columns and the order of
-- export_spans.sql. See push_span_log.sql.
SELECT trace_id, span_id, parent_span_id, operation_name, start_time_ns, finish_time_ns, process_id, thread_id,
       thread_name, hostname, query_id, is_server, status, unended, attribute,
       coalesce((
	       SELECT json_group_array(json_object('key', a.key, 'value',
		       json(iif(a.type = 'integer', json_object('intValue', a.value || ''),
		                                    json_object('stringValue', a.value || '')))))
	       FROM json_each(iif(json_valid(attribute), attribute, '{}')) AS a), '[]') AS attributes,
       coalesce((
	       SELECT json_group_array(json_object('timeUnixNano', (e.value ->> 'time_ns') || '', 'name', e.value ->> 'name'))
	       FROM json_each(iif(json_valid(events), events, '[]')) AS e), '[]') AS events,
       file, line, executable
FROM (
	SELECT
		printf('%016x%016x', r.trace_hi, r.trace_lo) AS trace_id,
		printf('%016x', r.span) AS span_id,
		iif(r.parent, printf('%016x', r.parent), '') AS parent_span_id,
		trim(s.name || iif(s.wait, (
			SELECT 'wait: ' || w.name || coalesce((SELECT ' (' || o.name || ')' FROM wait_objects AS o WHERE o.object = s.wait >> 8), '')
			FROM wait_causes AS w WHERE w.cause = s.wait & 255), '') || ' ' || coalesce(y.query,
			(SELECT x.query FROM statement_counters AS c JOIN statements AS x ON x.id = c.statement
			 WHERE c.normalized_query_hash = s.statement AND s.statement LIMIT 1), '')) AS operation_name,
		r.start_ns AS start_time_ns,
		r.start_ns + r.duration_ns AS finish_time_ns,
		p.process_id AS process_id,
		t.thread_id AS thread_id,
		t.thread_name AS thread_name,
		p.hostname AS hostname,
		q.query_id AS query_id,
		r.batch_flags & 1 AND r.parent = r.batch_parent AS is_server,
		CASE r.flags & 6 WHEN 2 THEN 1 WHEN 4 THEN 2 ELSE 0 END AS status,
		r.flags & 1 AS unended,
		'{' || coalesce((SELECT group_concat(note) FROM span_notes AS n WHERE n.span = r.span AND NOT n.is_event), '') || '}' AS attribute,
		'[' || coalesce((SELECT group_concat(note) FROM span_notes AS n WHERE n.span = r.span AND n.is_event), '') || ']' AS events,
		s.file AS file,
		s.line AS line,
		coalesce(p.executable, '') AS executable
	FROM (
		SELECT
			p.trace_hi AS trace_hi,
			p.trace_lo AS trace_lo,
			b.first_span + e.key AS span,
			iif(e.value ->> 1, b.first_span + e.key - (e.value ->> 1), p.parent) AS parent,
			e.value ->> 0 AS site,
			b.start_ns + (e.value ->> 2) AS start_ns,
			e.value ->> 3 AS duration_ns,
			coalesce(e.value ->> 5, 0) AS flags,
			coalesce(e.value ->> 6, 0) AS query,
			b.thread AS thread,
			b.flags AS batch_flags,
			b.parent AS batch_parent
		FROM span_batches AS b
		JOIN span_parts AS p ON p.batch = b.id
		CROSS JOIN json_each(b.spans) AS e
		WHERE b.id > :since AND b.id <= :until AND e.type = 'array') AS r
	LEFT JOIN span_sites AS s ON s.id = r.site
	LEFT JOIN threads AS t ON t.id = r.thread
	LEFT JOIN processes AS p ON p.id = t.process
	LEFT JOIN queries AS q ON q.id = r.query AND r.query
	LEFT JOIN statements AS y ON y.id = q.statement)
ORDER BY hostname, process_id, thread_id, start_time_ns, finish_time_ns DESC, span_id;
