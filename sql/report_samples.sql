-- The samples of the runs that are selected (see selected.sql), summed up by clock
-- and stack, in two temporary tables that the other report_*.sql read: run this
-- after selected.sql.
--
-- ns: time that the samples stand for. square: of the time of each, summed up.
DROP TABLE IF EXISTS temp.report_samples;
DROP TABLE IF EXISTS temp.report_parts;

CREATE TEMP TABLE report_samples AS
SELECT trace_type, stack AS stack_id, count(*) AS samples, sum(weight * period_ns) AS ns,
       sum(1.0 * weight * period_ns * weight * period_ns) AS square
FROM temp.selected_samples JOIN series ON series.id = series
GROUP BY trace_type, stack;

-- How many stretches of time the samples were taken from: one a run and thread.
-- Those without a sample are the runs that are left.
CREATE TEMP TABLE report_parts AS
SELECT trace_type,
       max(count(*), (SELECT count(*) FROM temp.selected WHERE id <> 0)) AS parts
FROM (SELECT DISTINCT trace_type, run, thread
      FROM temp.selected_samples JOIN series ON series.id = series)
GROUP BY trace_type;
