-- The samples of a report, summed up by clock and stack, in a temporary table that
-- the other report_*.sql read: run this one first. A report is about one query
-- (:query_id), about those with :like in their text, or about all (both NULL).
--
-- ns: time that the samples stand for. square: of the time of each, summed up.
DROP TABLE IF EXISTS temp.report_samples;

CREATE TEMP TABLE report_samples AS
WITH picked AS MATERIALIZED (
	SELECT DISTINCT query_id FROM query_log
	WHERE :query_id IS NULL AND query LIKE '%' || :like || '%'),
-- Sorted without the text of the stack, which comes in again by one sample of each.
sums AS MATERIALIZED (
	SELECT trace_type, stack_id, min(timestamp_ns) AS example, count(*) AS samples,
	       sum(time_ns) AS ns, sum(1.0 * time_ns * time_ns) AS square
	FROM (
		SELECT trace_type, stack_id, timestamp_ns, weight * period_ns AS time_ns
		FROM trace_log WHERE query_id = :query_id
		UNION ALL
		SELECT trace_type, stack_id, timestamp_ns, weight * period_ns
		FROM picked CROSS JOIN trace_log USING (query_id)
		UNION ALL
		SELECT trace_type, stack_id, timestamp_ns, weight * period_ns
		FROM trace_log
		WHERE :query_id IS NULL AND :like IS NULL)
	GROUP BY trace_type, stack_id)
SELECT sums.trace_type, sums.stack_id, trace_log.trace, samples, ns, square
FROM sums CROSS JOIN trace_log
  ON trace_log.timestamp_ns = example AND trace_log.stack_id = sums.stack_id;
