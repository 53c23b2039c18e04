-- Where the time of the queries of a report (see report_query.sql) went, by whole
-- stack, leaf first, one frame a line. :trace_type is CPU or Real.
WITH stacks AS MATERIALIZED (
	SELECT stack_id, trace, sum(weight * period_ns) AS ns
	FROM trace_log
	WHERE trace_type = coalesce(:trace_type, 'CPU')
	  AND CASE WHEN :query_id IS NOT NULL THEN query_id = :query_id
	           WHEN :like IS NOT NULL THEN query_id IN (
			SELECT query_id FROM query_log WHERE query LIKE '%' || :like || '%')
	           ELSE 1 END
	GROUP BY stack_id)
SELECT printf('%.1f %%', 100.0 * ns / (SELECT sum(ns) FROM stacks)) AS share,
       printf('%.1f', ns / 1e6) AS ms,
       traceToText(trace) AS stack
FROM stacks
ORDER BY ns DESC, stack_id
LIMIT coalesce(:limit, 5);
