-- SPDX-License-Identifier: Apache-2.0
-- The label sets in the rows :comment, of a statement's comments, and :labels; and another tracer's trace and span
-- that they name, like trace_log.
SELECT coalesce(h.labels || h.units, ''), coalesce(g.labels || g.units, ''),
       coalesce(nullif(h.otel_trace_id || h.otel_span_id, ''), g.otel_trace_id || g.otel_span_id, '')
FROM (SELECT :comment AS comment, :labels AS labels) AS wanted
LEFT JOIN label_sets AS h ON h.id = wanted.comment
LEFT JOIN label_sets AS g ON g.id = wanted.labels;
