-- SPDX-License-Identifier: Apache-2.0
-- The stacks of the samples in each span of the trace :trace_id, but in none of its children: at most :limit per
-- span, those with the most time first. stack: functions, leaf first. No sample names a span that the flusher made
-- from a run (a part with one span); the run's samples belong to it.
WITH
parts AS MATERIALIZED (
	SELECT b.first_span AS first_span, b.first_span + 100000 AS last_span,
	       b.start_ns AS start_ns, b.start_ns + b.lasted_ns AS end_ns,
	       iif(b.count = 1, (SELECT nullif(value, 0) FROM json_each(b.spans, '$[0][6]')), NULL) AS query
	FROM span_parts AS p JOIN span_batches AS b ON b.id = p.batch
	WHERE printf('%016x%016x', p.trace_hi, p.trace_lo) = :trace_id),
times AS MATERIALIZED (
	SELECT coalesce(nullif(s.span, 0), (SELECT first_span FROM parts WHERE parts.query = s.query)) AS span, s.stack AS stack_id, r.trace_type AS trace_type, r.unit AS unit, count(*) AS samples,
	       sum(s.size + s.weight * r.period_ns) AS value
	FROM (SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM parts) AS t
	CROSS JOIN samples AS s ON s.timestamp_ns BETWEEN t.start_ns AND t.end_ns
	JOIN series AS r ON r.id = s.series
	WHERE EXISTS (SELECT 1 FROM parts
	              WHERE iif(s.span, s.span BETWEEN first_span AND last_span, parts.query = s.query))
	GROUP BY 1, 2, 3, 4),
ranked AS (
	SELECT *, row_number() OVER (PARTITION BY span, trace_type ORDER BY value DESC, stack_id) AS place,
	       sum(value) OVER (PARTITION BY span, trace_type) AS whole
	FROM times)
SELECT printf('%016x', span) AS span_id,
       printf('%.1f %% of %s', 100.0 * value / whole, iif(trace_type = 'Real', 'wall time', trace_type)) AS share,
       (SELECT group_concat(function, ' < ') FROM stack_frames AS f WHERE f.stack_id = ranked.stack_id) AS stack
FROM ranked
WHERE place <= coalesce(CAST(:limit AS INTEGER), 3)
ORDER BY span, trace_type, place;
