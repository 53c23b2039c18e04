-- SPDX-License-Identifier: Apache-2.0
-- The ended traces of requests, the slowest first. Parameters, which may be NULL: :by (duration, cpu, wait, spans,
-- start: the newest first), :limit, :like (in the name of the root), :since, :until (ns since 1970), :min_duration
-- (ns), :process (number or program), :for_table (shorter: times without the year). dropped: spans that were lost.
DROP TABLE IF EXISTS temp.span_places;
DROP TABLE IF EXISTS temp.trace_cpu;

-- run: of a span that the flusher made from it; otherwise 0 or NULL. For the order by CPU time only.
CREATE TEMP TABLE span_places (
	thread INTEGER, first_span INTEGER, batch INTEGER, start_ns INTEGER, end_ns INTEGER, run INTEGER,
	PRIMARY KEY (thread, first_span, batch)) WITHOUT ROWID;
CREATE INDEX temp.span_places_by_run ON span_places (run) WHERE run;

INSERT INTO span_places
SELECT thread, first_span, id, start_ns, start_ns + lasted_ns, iif(count = 1, (SELECT value FROM json_each(spans, '$[0][6]')), 0)
FROM span_batches WHERE :by = 'cpu';

-- The view's cpu_time_ns of all traces, from one pass over the samples: the view reads a time range of them for each
-- trace.
CREATE TEMP TABLE trace_cpu (trace_id TEXT PRIMARY KEY, ns INTEGER) WITHOUT ROWID;

INSERT INTO trace_cpu
WITH sampled AS (
	SELECT o.batch AS batch, m.weight * i.period_ns AS ns
	FROM (SELECT 1 FROM temp.span_places LIMIT 1) CROSS JOIN samples AS m CROSS JOIN series AS i ON i.id = m.series
	CROSS JOIN temp.span_places AS o ON o.thread = i.thread AND o.first_span BETWEEN m.span - 999 AND m.span
	WHERE m.span AND i.trace_type = 'CPU' AND m.timestamp_ns BETWEEN o.start_ns AND o.end_ns
	UNION ALL
	SELECT o.batch, m.weight * i.period_ns
	FROM (SELECT 1 FROM temp.span_places WHERE run LIMIT 1) CROSS JOIN samples AS m
	CROSS JOIN temp.span_places AS o ON o.run AND o.run = m.query CROSS JOIN series AS i ON i.id = m.series AND i.thread = o.thread
	WHERE m.span = 0 AND i.trace_type = 'CPU' AND m.timestamp_ns BETWEEN o.start_ns AND o.end_ns)
SELECT printf('%016x%016x', trace_hi, trace_lo), sum(ns)
FROM (SELECT batch, sum(ns) AS ns FROM sampled GROUP BY batch) JOIN span_parts USING (batch)
GROUP BY 1;

SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
                start_time_ns / 1000000000, 'unixepoch') AS started,
       round(duration_ns / 1e6, 3) AS wall_ms,
       round(cpu_time_ns / 1e6, 3) AS cpu_ms,
       round(wait_time_ns / 1e6, 3) AS wait_ms,
       spans,
       statements,
       threads,
       dropped,
       trace_id,
       oneLine(root) AS root
FROM traces
WHERE (:like IS NULL OR root LIKE '%' || :like || '%')
  AND (:since IS NULL OR start_time_ns >= CAST(:since AS INTEGER))
  AND (:until IS NULL OR start_time_ns < CAST(:until AS INTEGER))
  AND (:min_duration IS NULL OR duration_ns >= CAST(:min_duration AS INTEGER))
  AND (:process IS NULL OR :process IN (process_id || '', program, fileName(program)))
ORDER BY CASE coalesce(:by, 'duration') WHEN 'cpu' THEN coalesce((SELECT ns FROM temp.trace_cpu AS c WHERE c.trace_id = traces.trace_id), 0)
                                        WHEN 'wait' THEN wait_time_ns
                                        WHEN 'spans' THEN spans
                                        WHEN 'start' THEN start_time_ns
                                        ELSE duration_ns END DESC, start_time_ns, trace_id
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
