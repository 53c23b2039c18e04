-- The time of the queries of a report (see report_query.sql) as the clocks measured
-- it, and as the samples add up to it. After report_samples.sql.
-- `error` is the standard error of the sampled time, had the samples fallen
-- independently of each other; they come at even distances, so it is less. The
-- clock on the CPU is that of the thread that began the query: helper threads
-- have samples, too, but no part in the exact time.
WITH exact AS MATERIALIZED (
	SELECT sum(query_duration_ns) AS wall, sum(cpu_time_ns) AS cpu FROM query_log
	WHERE CASE WHEN :query_id IS NOT NULL THEN query_id = :query_id
	           WHEN :like IS NOT NULL THEN query LIKE '%' || :like || '%'
	           ELSE 1 END),
sampled AS MATERIALIZED (
	SELECT trace_type, sum(samples) AS samples, sum(ns) AS ns, sqrt(sum(square)) AS error
	FROM temp.report_samples
	GROUP BY trace_type),
clocks AS (
	SELECT 1 AS line, 'wall' AS clock, wall AS exact, 'Real' AS trace_type FROM exact
	UNION ALL
	SELECT 2, 'on CPU', cpu, 'CPU' FROM exact
	UNION ALL
	SELECT 3, 'off CPU', wall - cpu, NULL FROM exact)
SELECT clock,
       CASE WHEN exact IS NULL THEN '' ELSE printf('%.1f', exact / 1e6) END AS exact_ms,
       CASE WHEN ns IS NULL THEN '' ELSE printf('%.1f', ns / 1e6) END AS sampled_ms,
       CASE WHEN ns IS NULL THEN '' ELSE printf('%.1f', error / 1e6) END AS error_ms,
       CASE WHEN ns IS NULL OR exact IS NULL OR exact = 0 THEN ''
            ELSE printf('%+.1f %%', 100.0 * (ns - exact) / exact) END AS differs,
       coalesce(samples, '') AS samples
FROM clocks LEFT JOIN sampled USING (trace_type)
ORDER BY line;
