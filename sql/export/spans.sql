-- SPDX-License-Identifier: Apache-2.0
-- The spans of the traces that contain a selected run (see read/selected.sql), or all spans if none is selected. A
-- run is in the trace of its own span, and in those that contain its samples. Ordered by process, thread and start;
-- if two begin together, the longer one comes first. attributes, events: JSON arrays as in OTLP, empty unless
-- :with_arrays is not NULL. process: its row. :with_runs (not NULL): also the selected runs in no trace. After
-- read/span_texts.sql.
WITH sampled AS MATERIALIZED (
	SELECT DISTINCT span FROM temp.selected_samples WHERE span <> 0),
wanted AS MATERIALIZED (
	SELECT DISTINCT trace_id FROM temp.span_texts
	WHERE EXISTS (SELECT 1 FROM temp.selected WHERE id = query) OR span IN (SELECT span FROM sampled))
SELECT trace_id, span_id, parent_span_id, operation_name, start_time_ns, finish_time_ns, process_id, thread_id,
       thread_name, hostname, query_id, is_server, iif(status = 3, 0, status) AS status, unended, attribute,
       iif(:with_arrays IS NULL, '[]', coalesce((
	       SELECT json_group_array(json_object('key', a.key, 'value',
		       json(iif(a.type = 'integer', json_object('intValue', a.value || ''),
		                                    json_object('stringValue', a.value || '')))))
	       FROM json_each(iif(json_valid(attribute), attribute, '{}')) AS a), '[]')) AS attributes,
       iif(:with_arrays IS NULL, '[]', coalesce((
	       SELECT json_group_array(json_object('timeUnixNano', (e.value ->> 'time_ns') || '', 'name', e.value ->> 'name'))
	       FROM json_each(iif(json_valid(events), events, '[]')) AS e), '[]')) AS events,
       file, line, executable, process
FROM temp.span_texts
WHERE EXISTS (SELECT 1 FROM temp.selected WHERE id = 0) OR trace_id IN (SELECT trace_id FROM wanted)
UNION ALL
SELECT '', printf('%016x', r.id), '', trim(replace(replace(r.query, char(10), ' '), char(13), ' ')), r.query_start_ns,
       r.query_start_ns + r.query_duration_ns, p.process_id, r.thread_id,
       coalesce((SELECT thread_name FROM threads WHERE threads.process = r.process AND threads.thread_id = r.thread_id LIMIT 1), ''),
       p.hostname, r.query_id, 0, iif(r.exception_code = 0, 0, 2), NOT r.finished, '{}', '[]', '[]', '', 0, p.executable, r.process
FROM temp.selected_runs AS r JOIN processes AS p ON p.id = r.process
WHERE :with_runs IS NOT NULL AND r.query_start_ns > 0
  AND r.id NOT IN (SELECT query FROM temp.span_texts WHERE query IS NOT NULL)
ORDER BY process, thread_id, start_time_ns, finish_time_ns DESC, span_id;
