-- SPDX-License-Identifier: Apache-2.0
-- The ids of span :span and its trace as span_log has them; no row if the file does not have it. After
-- export/links.sql. If any row has the span, it is the one with the greatest first_span up to it.
SELECT printf('%016x%016x%016x', trace_hi, trace_lo, :span)
FROM (SELECT batch, first_span FROM temp.linked_batches WHERE first_span <= :span ORDER BY first_span DESC LIMIT 1) AS l
CROSS JOIN span_batches AS b ON b.id = l.batch AND b.first_span = l.first_span
WHERE json_type(spans, '$[' || (:span - b.first_span) || ']') = 'array';
