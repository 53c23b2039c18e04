-- SPDX-License-Identifier: Apache-2.0
-- The runs that are selected (see read/selected.sql), the costliest first. Parameters,
-- which may be left NULL: :by (cpu, wall, off, samples, start), :limit, :for_table
-- (shorter: times without the year, ids cut).
-- Times are without the worker threads that SQLite made. sampled_ms is what the samples
-- add up to, on the clock of the order: wall time for wall and off. wall_ms is the time
-- inside SQLite. notes: what may explain the time, and the program's own between two rows. A run whose end was not recorded has no rows: its times go to its
-- newest sample. A table of several lines ends with their sum. In the sqlite3 shell on a trace file: .read sql/read/selected.sql, then
-- .read sql/read/queries.sql
WITH runs AS MATERIALIZED (
	SELECT * FROM temp.selected_runs
	ORDER BY CASE :by WHEN 'wall' THEN execution_time_ns
	                  WHEN 'off' THEN execution_time_ns - cpu_time_ns
	                  WHEN 'samples' THEN samples_cpu + samples_real
	                  WHEN 'start' THEN query_start_ns
	                  ELSE cpu_time_ns END DESC, id
	LIMIT coalesce(CAST(:limit AS INTEGER), 20)),
lines AS MATERIALIZED (
	SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
	                query_start_ns / 1000000000, 'unixepoch') AS started,
	       round(execution_time_ns / 1e6, iif(:for_table, 4, 3)) AS wall_ms,
	       round(cpu_time_ns / 1e6, iif(:for_table, 4, 3)) AS cpu_ms,
	       (SELECT round(total(value) / 1e6, iif(:for_table, 1, 3)) FROM temp.selected_samples
	        WHERE run = runs.id AND timestamp_ns BETWEEN first_ns AND last_ns
	          AND iif(coalesce(:by, 'cpu') IN ('wall', 'off'), trace_type IN (SELECT trace_type FROM temp.wall_types),
	                  trace_type = 'CPU')
	          AND (worker_cpu_time_ns = 0 OR thread IN (
	                SELECT id FROM threads WHERE process = runs.process AND thread_id = runs.thread_id))) AS sampled_ms,
	       iif(finished, result_rows, NULL) AS rows,
	       -- as much of a UUID as differs from the others
	       CASE WHEN :for_table AND query_id GLOB '*-*-*-*-*' AND length(query_id) = 36
	            THEN substr(query_id, 1, 18) ELSE query_id END AS query_id,
	       ltrim(iif(finished, '', ', unfinished') || iif(exception_code <> 0, ', failed', '')
	             || iif(fullscan_steps > max(1000, 10 * result_rows),
	                    ', scan ' || iif(fullscan_steps < 10e6, (fullscan_steps / 1000) || 'k',
	                                     (fullscan_steps / 1000000) || 'M'), '')
	             || iif(sorts > 0, ', sort', '') || iif(autoindexes > 0, ', index', '')
	             || iif(query_duration_ns - execution_time_ns > max(1000000, execution_time_ns / 10),
	                    printf(', %,d ms between rows', (query_duration_ns - execution_time_ns) / 1000000), ''), ', ') AS notes,
	       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
	FROM runs)
SELECT * FROM lines
UNION ALL
SELECT NULL, sum(wall_ms), sum(cpu_ms), sum(sampled_ms), sum(rows), NULL, NULL,
       'sum of ' || count(*) || (SELECT iif(count(*) > (SELECT count(*) FROM lines), ' of ' || count(*), '') FROM temp.selected_runs)
FROM lines WHERE :for_table HAVING count(*) > 1;
