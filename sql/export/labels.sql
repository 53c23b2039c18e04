-- SPDX-License-Identifier: Apache-2.0
-- The data of the query in row :query, the thread in row :thread, the label set in row :labels and the context in row
-- :context. Columns 5 and 6 are label sets; that of the statement's comments takes precedence. Column 12 is the trace
-- and the span of another tracer, as in trace_log, 13 the row of the process, 14 its script. After read/selected.sql.
SELECT coalesce(query_id, ''), coalesce(thread_name || ' (' || threads.thread_id || ')', ''),
       coalesce(database, ''), trim(coalesce(statements.query, '')), coalesce(normalized_query_hash, 0),
       coalesce(h.labels || h.units, ''), coalesce(g.labels || g.units, ''),
       (SELECT runs FROM temp.selected_statements WHERE hash = normalized_query_hash),
       coalesce(processes.process_id, 0), coalesce(threads.thread_id, 0),
       coalesce(processes.executable, ''), coalesce(processes.hostname, ''),
       coalesce(c.otel_trace_id || c.otel_span_id, nullif(h.otel_trace_id || h.otel_span_id, ''),
                g.otel_trace_id || g.otel_span_id, ''),
       coalesce(threads.process, 0), coalesce(processes.script, '')
FROM (SELECT :query AS query, :thread AS thread, :labels AS labels, :context AS context) AS wanted
LEFT JOIN queries ON queries.id = wanted.query
LEFT JOIN statements ON statements.id = statement
LEFT JOIN threads ON threads.id = wanted.thread
LEFT JOIN processes ON processes.id = threads.process
LEFT JOIN label_sets AS h ON h.id = statements.labels
LEFT JOIN label_sets AS g ON g.id = wanted.labels
LEFT JOIN trace_contexts AS c ON c.id = wanted.context;
