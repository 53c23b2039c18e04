-- SPDX-License-Identifier: Apache-2.0
-- The statements of the runs that are selected (see selected.sql), all runs of one
-- together, the costliest first: queries that differ only in their literals are one
-- statement. Parameters, sampled_ms and notes as in queries.sql. statement is the
-- normalized_query_hash in hexadecimal, in a table its beginning.
WITH sampled AS MATERIALIZED (
	SELECT run, sum(value) AS value FROM temp.selected_samples JOIN queries AS runs ON runs.id = run
	WHERE trace_type = iif(:by IN ('wall', 'off'), 'Real', 'CPU')
	  AND (worker_cpu_time_ns = 0 OR thread IN (
	        SELECT id FROM threads WHERE process = runs.process AND thread_id = runs.thread_id))
	GROUP BY run)
SELECT count(*) AS runs,
       round(sum(query_duration_ns) / 1e6, iif(:for_table, 1, 3)) AS wall_ms,
       round(sum(cpu_time_ns) / 1e6, iif(:for_table, 1, 3)) AS cpu_ms,
       round(max(query_duration_ns) / 1e6, iif(:for_table, 1, 3)) AS max_ms,
       round(total(value) / 1e6, iif(:for_table, 1, 3)) AS sampled_ms,
       sum(result_rows) AS rows,
       nullif(sum(exception_code <> 0), iif(:for_table, 0, -1)) AS failed,
       substr(printf('%016x', normalized_query_hash), 1, iif(:for_table, 8, 16)) AS statement,
       ltrim(iif(sum(fullscan_steps) > max(1000, 10 * sum(result_rows)),
                 ', scan ' || iif(sum(fullscan_steps) < 10e6, (sum(fullscan_steps) / 1000) || 'k',
                                  (sum(fullscan_steps) / 1000000) || 'M'), '')
             || iif(sum(sorts) > 0, ', sort', '') || iif(sum(autoindexes) > 0, ', index', ''), ', ') AS notes,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM temp.selected_runs LEFT JOIN sampled ON run = id
GROUP BY normalized_query_hash
ORDER BY CASE :by WHEN 'wall' THEN sum(query_duration_ns)
                  WHEN 'off' THEN sum(execution_time_ns - cpu_time_ns)
                  WHEN 'samples' THEN sum(samples_cpu + samples_real)
                  WHEN 'start' THEN max(query_start_ns)
                  ELSE sum(cpu_time_ns) END DESC, min(id)
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
