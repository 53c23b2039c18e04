-- SPDX-License-Identifier: Apache-2.0
-- All spans of the file, by process and thread, as they began; of two that begin together the
-- longer one first. attributes, events: as OTLP has them, JSON arrays.
SELECT trace_id,
       span_id,
       parent_span_id,
       operation_name,
       start_time_ns,
       finish_time_ns,
       process_id,
       thread_id,
       thread_name,
       hostname,
       query_id,
       kind = 'SERVER' AS is_server,
       CASE status WHEN 'OK' THEN 1 WHEN 'ERROR' THEN 2 ELSE 0 END AS status,
       unended,
       attribute,
       coalesce((
	       SELECT json_group_array(json_object('key', a.key, 'value',
		       json(iif(a.type = 'integer', json_object('intValue', a.value || ''),
		                                    json_object('stringValue', a.value || '')))))
	       FROM json_each(iif(json_valid(attribute), attribute, '{}')) AS a), '[]') AS attributes,
       coalesce((
	       SELECT json_group_array(json_object('timeUnixNano', (e.value ->> 'time_ns') || '', 'name', e.value ->> 'name'))
	       FROM json_each(iif(json_valid(events), events, '[]')) AS e), '[]') AS events,
       file,
       line,
       coalesce((SELECT executable FROM processes AS p
                 WHERE p.process_id = span_log.process_id AND p.hostname = span_log.hostname ORDER BY p.id DESC LIMIT 1), '')
FROM span_log
ORDER BY hostname, process_id, thread_id, start_time_ns, finish_time_ns DESC, span_id;
