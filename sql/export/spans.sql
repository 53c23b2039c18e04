-- SPDX-License-Identifier: Apache-2.0
-- The spans of the traces that a selected run is in (see read/selected.sql), all spans where none are selected: a run is in
-- the trace of its own span, and of those that its samples fell into. By process and thread, as they began; of
-- two that begin together the longer one first. attributes, events: as OTLP has them, JSON arrays. process: the row
-- of it. After span_texts.sql.
WITH sampled AS MATERIALIZED (
	SELECT DISTINCT span FROM temp.selected_samples CROSS JOIN samples USING (timestamp_ns) WHERE span <> 0),
wanted AS MATERIALIZED (
	SELECT DISTINCT trace_id FROM temp.span_texts
	WHERE query IN (SELECT id FROM temp.selected) OR span IN (SELECT span FROM sampled))
SELECT trace_id, span_id, parent_span_id, operation_name, start_time_ns, finish_time_ns, process_id, thread_id,
       thread_name, hostname, query_id, is_server, iif(status = 3, 0, status) AS status, unended, attribute,
       coalesce((
	       SELECT json_group_array(json_object('key', a.key, 'value',
		       json(iif(a.type = 'integer', json_object('intValue', a.value || ''),
		                                    json_object('stringValue', a.value || '')))))
	       FROM json_each(iif(json_valid(attribute), attribute, '{}')) AS a), '[]') AS attributes,
       coalesce((
	       SELECT json_group_array(json_object('timeUnixNano', (e.value ->> 'time_ns') || '', 'name', e.value ->> 'name'))
	       FROM json_each(iif(json_valid(events), events, '[]')) AS e), '[]') AS events,
       file, line, executable, process
FROM temp.span_texts
WHERE EXISTS (SELECT 1 FROM temp.selected WHERE id = 0) OR trace_id IN (SELECT trace_id FROM wanted)
ORDER BY process, thread_id, start_time_ns, finish_time_ns DESC, span_id;
