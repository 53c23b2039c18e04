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
	WHERE EXISTS (SELECT 1 FROM temp.selected WHERE id = query) OR span IN (SELECT span FROM sampled)),
-- Sorts a million runs, so it omits the columns that follow from a row's process, thread and statement. LIMIT keeps
-- the order; in the sorted SELECT itself, SQLite would insert row by row into a tree.
placed AS (SELECT * FROM (
	SELECT process, thread_id, start_time_ns, finish_time_ns, span_id, trace_id, parent_span_id, operation_name, 0 AS statement, thread_name,
	       query_id, is_server, iif(status = 3, 0, status) AS status, unended, attribute,
	       iif(:with_arrays IS NULL, '[]', coalesce((
		       SELECT json_group_array(json_object('key', a.key, 'value',
			       json(iif(a.type = 'integer', json_object('intValue', a.value || ''),
			                                    json_object('stringValue', a.value || '')))))
		       FROM json_each(iif(json_valid(attribute), attribute, '{}')) AS a), '[]')) AS attributes,
	       iif(:with_arrays IS NULL, '[]', coalesce((
		       SELECT json_group_array(json_object('timeUnixNano', (e.value ->> 'time_ns') || '', 'name', e.value ->> 'name'))
		       FROM json_each(iif(json_valid(events), events, '[]')) AS e), '[]')) AS events,
	       file, line
	FROM temp.span_texts
	WHERE EXISTS (SELECT 1 FROM temp.selected WHERE id = 0) OR trace_id IN (SELECT trace_id FROM wanted)
	UNION ALL
	SELECT process, thread_id, query_start_ns, query_start_ns + query_duration_ns, printf('%016x', id), '', '', NULL, statement, NULL,
	       query_id, 0, iif(exception_code = 0, 0, 2), NOT finished, '{}', '[]', '[]', '', 0
	FROM temp.selected_runs
	WHERE :with_runs IS NOT NULL AND query_start_ns > 0 AND process IN (SELECT id FROM processes)
	  AND id NOT IN (SELECT query FROM temp.span_texts WHERE query IS NOT NULL)
	ORDER BY process, thread_id, start_time_ns, finish_time_ns DESC, span_id) LIMIT -1)
SELECT trace_id, span_id, parent_span_id,
       coalesce(operation_name, (SELECT trim(replace(replace(query, char(10), ' '), char(13), ' ')) FROM statements WHERE id = statement), ''),
       s.start_time_ns, s.finish_time_ns, p.process_id, s.thread_id,
       coalesce(s.thread_name, (SELECT t.thread_name FROM threads AS t WHERE t.process = s.process AND t.thread_id = s.thread_id LIMIT 1), ''),
       p.hostname, query_id, is_server, status, unended, attribute, attributes, events, file, line, p.executable, s.process
FROM placed AS s LEFT JOIN processes AS p ON p.id = s.process;
