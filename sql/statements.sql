-- SPDX-License-Identifier: Apache-2.0
-- The statements of the runs that are selected (see selected.sql), all runs of one
-- together, the costliest first: queries that differ only in their literals are one
-- statement. Parameters as in queries.sql.
SELECT count(*) AS runs,
       round(sum(query_duration_ns) / 1e6, iif(:for_table, 1, 3)) AS wall_ms,
       round(sum(cpu_time_ns) / 1e6, iif(:for_table, 1, 3)) AS cpu_ms,
       round(max(query_duration_ns) / 1e6, iif(:for_table, 1, 3)) AS max_ms,
       sum(samples_cpu) AS n_cpu, sum(samples_real) AS n_wall, sum(result_rows) AS rows,
       sum(exception_code <> 0) AS failed,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM temp.selected_runs
GROUP BY normalized_query_hash
ORDER BY CASE :by WHEN 'wall' THEN sum(query_duration_ns)
                  WHEN 'off' THEN sum(execution_time_ns - cpu_time_ns)
                  WHEN 'samples' THEN sum(samples_cpu + samples_real)
                  WHEN 'start' THEN max(query_start_ns)
                  ELSE sum(cpu_time_ns) END DESC, min(id)
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
