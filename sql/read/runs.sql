-- SPDX-License-Identifier: Apache-2.0
-- Prints the runs of temp.lines. After read/run_lines.sql and read/causes.sql. :by as there. :for_table (shorter:
-- times without the year, ids cut, the sum of several lines in the last line).
-- Times exclude the worker threads that SQLite made. sampled_ms is the sum of the samples, on the CPU clock with :by
-- cpu, otherwise on the wall clock. wall_ms is the time inside SQLite. A run whose end was not recorded has no rows;
-- its times extend to its newest sample.
WITH shown AS MATERIALIZED (
	SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
	                query_start_ns / 1000000000, 'unixepoch') AS started,
	       round(execution_time_ns / 1e6, iif(:for_table, 4, 3)) AS wall_ms,
	       round(cpu_time_ns / 1e6, iif(:for_table, 4, 3)) AS cpu_ms,
	       (SELECT round(total(value) / 1e6, iif(:for_table, 1, 3)) FROM temp.selected_samples
	        WHERE run = r.id AND timestamp_ns BETWEEN first_ns AND last_ns
	          AND iif(:by = 'cpu', trace_type = 'CPU', trace_type IN (SELECT trace_type FROM temp.wall_types))
	          AND (worker_cpu_time_ns = 0 OR thread IN (
	                SELECT id FROM threads WHERE process = r.process AND thread_id = r.thread_id))) AS sampled_ms,
	       iif(finished, result_rows, NULL) AS rows,
	       waits,
	       -- the part of a UUID that distinguishes it
	       CASE WHEN :for_table AND query_id GLOB '*-*-*-*-*' AND length(query_id) = 36
	            THEN substr(query_id, 1, 18) ELSE query_id END AS query_id,
	       notes,
	       oneLine(r.query) AS query
	FROM temp.lines JOIN temp.line_causes USING (line) JOIN temp.selected_runs AS r ON r.id = lines.run
	ORDER BY line)
SELECT * FROM shown
UNION ALL
SELECT NULL, sum(wall_ms), sum(cpu_ms), sum(sampled_ms), sum(rows), NULL, NULL, NULL,
       'sum of ' || count(*) || (SELECT iif(count(*) > (SELECT count(*) FROM shown), ' of ' || count(*), '') FROM temp.selected_runs)
FROM shown WHERE :for_table HAVING count(*) > 1;
