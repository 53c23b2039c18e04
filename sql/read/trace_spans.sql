-- SPDX-License-Identifier: Apache-2.0
-- The spans of the trace :trace_id, ordered by their start. A statement's span lasts until its run has ended, so its notes
-- say how much of that the program spent between two rows.
SELECT span_id,
       parent_span_id,
       oneLine(operation_name) AS name,
       start_time_ns,
       duration_ns,
       self_time_ns,
       cpu_time_ns,
       cpu_time_error_ns,
       samples,
       ltrim(iif(unended, ', unended', '') || CASE status WHEN 'ERROR' THEN ', failed' WHEN 'OK' THEN ', ok' ELSE '' END
             || coalesce((SELECT ', between rows ' || duration(query_duration_ns - execution_ns) FROM queries AS q
                          WHERE q.query_id = span_log.query_id AND q.finished
                            AND query_duration_ns - execution_ns > max(1000000, execution_ns / 10)), '')
             || iif(attribute <> '{}', ', ' || substr(attribute, 2, length(attribute) - 2), ''), ', ') AS notes,
       process_id || '/' || thread_id AS thread,
       thread_name
FROM span_log
WHERE trace_id = :trace_id
ORDER BY start_time_ns, span_id;
