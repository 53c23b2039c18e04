-- SPDX-License-Identifier: Apache-2.0
-- The ids of span :span and its trace as span_log has them; no row: the file does not have it. After
-- export_links.sql. A batch has 1,000 spans at most.
SELECT printf('%016x%016x%016x', b.trace_hi, b.trace_lo, :span)
FROM temp.linked_batches AS l
CROSS JOIN span_batches AS b ON b.id = l.batch AND b.first_span = l.first_span
WHERE l.first_span > :span - 1000 AND l.first_span <= :span
  AND json_type(b.spans, '$[' || (:span - l.first_span) || ']') = 'array'
LIMIT 1;
