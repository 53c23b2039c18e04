-- SPDX-License-Identifier: Apache-2.0
-- The spans of the trace :trace_id, ordered by their start. events: their names.
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
             || iif(attribute <> '{}', ', ' || substr(attribute, 2, length(attribute) - 2), ''), ', ') AS notes,
       process_id || '/' || thread_id AS thread,
       thread_name
FROM span_log
WHERE trace_id = :trace_id
ORDER BY start_time_ns, span_id;
