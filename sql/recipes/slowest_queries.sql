-- SPDX-License-Identifier: Apache-2.0
-- The queries that took the most CPU time, with that of the worker threads that SQLite made: their exact times in ms,
-- their numbers of samples of each kind, and the difference between the sampled and the exact CPU time.
WITH slowest AS MATERIALIZED (
	SELECT query_id, query_duration_ns, cpu_time_ns + worker_cpu_time_ns AS cpu_time_ns,
	       samples_cpu, samples_real, query
	FROM system.query_log ORDER BY 3 DESC LIMIT 10),
sampled AS MATERIALIZED (
	SELECT query_id, sum(value) AS ns
	FROM system.trace_log
	WHERE trace_type = 'CPU' AND query_id IN (SELECT query_id FROM slowest)
	GROUP BY query_id)
SELECT printf('%7.1f', query_duration_ns / 1e6) AS time,
       printf('%7.1f', cpu_time_ns / 1e6) AS cpu,
       samples_cpu AS n_cpu,
       samples_real AS n_wall,
       iif(ns, printf('%+5.1f %%', 100.0 * (ns - cpu_time_ns) / cpu_time_ns), '') AS off,
       query_id,
       substr(trim(replace(replace(query, char(10), ' '), char(9), ' ')), 1, 20) AS query
FROM slowest LEFT JOIN sampled USING (query_id)
ORDER BY cpu_time_ns DESC;
