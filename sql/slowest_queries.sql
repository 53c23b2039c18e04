-- The queries that took the most CPU time: their exact times, their samples, and
-- how far the time that the samples stand for is from the exact one.
WITH slowest AS MATERIALIZED (
	SELECT query_id, query_duration_ns, cpu_time_ns, samples_cpu, samples_real, query
	FROM system.query_log ORDER BY cpu_time_ns DESC LIMIT 10),
sampled AS MATERIALIZED (
	SELECT query_id, sum(weight * period_ns) AS cpu_ns
	FROM system.trace_log
	WHERE trace_type = 'CPU' AND query_id IN (SELECT query_id FROM slowest)
	GROUP BY query_id)
SELECT printf('%7.1f', query_duration_ns / 1e6) AS time_ms,
       printf('%7.1f', cpu_time_ns / 1e6) AS cpu_ms,
       samples_cpu, samples_real,
       printf('%+5.1f %%', 100.0 * (cpu_ns - cpu_time_ns) / cpu_time_ns) AS sampled,
       query_id,
       substr(trim(replace(replace(query, char(10), ' '), char(9), ' ')), 1, 28) AS query
FROM slowest LEFT JOIN sampled USING (query_id)
ORDER BY cpu_time_ns DESC;
