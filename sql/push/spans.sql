-- SPDX-License-Identifier: Apache-2.0
-- The spans in the rows of span_batches after :since up to :until, in the columns and the order of
-- export/spans.sql. After span_texts.sql.
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
WHERE batch > :since AND batch <= :until
ORDER BY process, thread_id, start_time_ns, finish_time_ns DESC, span_id;
