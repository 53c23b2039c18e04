-- SPDX-License-Identifier: Apache-2.0
-- The samples of the runs that are selected (see read/selected.sql), summed up by type
-- and stack, in two temporary tables that the other report_*.sql read: run this
-- after selected.sql.
--
-- value: the sum of the samples' values, in the unit of their type. square: of their
-- squares; of OffCPU the value of each times its period, as such a sample stands for one wait that
-- was seen as a whole, and only the last period of it is chance.
DROP TABLE IF EXISTS temp.report_samples;
DROP TABLE IF EXISTS temp.report_parts;

-- By number first: texts are slow to sort.
CREATE TEMP TABLE report_samples AS
SELECT trace_type, stack_id, sum(samples) AS samples, sum(value) AS value, sum(square) AS square
FROM (SELECT stack_id, series, count(*) AS samples, sum(value) AS value, sum(1.0 * value * iif(trace_type = 'OffCPU', period_ns, value)) AS square
      FROM temp.selected_samples GROUP BY stack_id, series)
JOIN series ON series.id = series
GROUP BY trace_type, stack_id;

-- By run and thread, each a stretch of time that samples were taken from. is_worker: the
-- thread helped the run's own, as those that sort for `PRAGMA threads` do. (A statement
-- may be continued on another thread; that is the run's own then.) changes: how often the time between
-- its signals became another one, each time with a new phase (see query_profiler_max_threads).
CREATE TEMP TABLE report_parts AS
SELECT trace_type, run, coalesce(finished, 1) AS finished,
       coalesce(threads.thread_id <> queries.thread_id AND worker_cpu_time_ns > 0, 0) AS is_worker,
       samples, value, square, coalesce(changes, 0) AS changes
FROM (SELECT trace_type, run, thread, sum(samples) AS samples, sum(value) AS value, sum(square) AS square
      FROM (SELECT run, series, count(*) AS samples, sum(value) AS value, sum(1.0 * value * iif(trace_type = 'OffCPU', period_ns, value)) AS square
            FROM temp.selected_samples GROUP BY run, series)
      JOIN series ON series.id = series
      GROUP BY trace_type, run, thread)
LEFT JOIN (SELECT trace_type, run, thread, count(*) AS changes
           FROM (SELECT trace_type, run, thread, series,
                        lag(series) OVER (PARTITION BY trace_type, run, thread ORDER BY timestamp_ns) AS before
                 FROM temp.selected_samples WHERE EXISTS (SELECT 1 FROM series WHERE stretch > 1))
           WHERE series <> before
           GROUP BY trace_type, run, thread) USING (trace_type, run, thread)
LEFT JOIN queries ON queries.id = run AND run <> 0
LEFT JOIN threads ON threads.id = thread;
