-- SPDX-License-Identifier: Apache-2.0
-- The statements that are selected (see read/selected.sql), all runs of one together, the
-- costliest first: queries that differ only in their literals are one statement. The numbers
-- are of all runs; where runs is NULL, of the logged ones. Parameters, sampled_ms and notes as
-- in queries.sql. statement is the normalized_query_hash in hexadecimal, in a table its
-- beginning. A table of several lines ends with their sum.
WITH sampled AS MATERIALIZED (
	-- The cast gives the column a type, without which the join below has no index.
	SELECT CAST(normalized_query_hash AS INTEGER) AS hash, sum(value) AS value
	FROM temp.selected_samples JOIN temp.selected_runs AS runs ON runs.id = run
	WHERE iif(coalesce(:by, 'cpu') IN ('wall', 'off'), trace_type IN (SELECT trace_type FROM temp.wall_types),
	          trace_type = 'CPU')
	  AND (worker_cpu_time_ns = 0 OR thread IN (
	        SELECT id FROM threads WHERE process = runs.process AND thread_id = runs.thread_id))
	GROUP BY normalized_query_hash),
-- Runs that have not ended are in no count yet: what has passed by the newest sample of each.
unfinished AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, sum(execution_time_ns) AS wall, sum(cpu_time_ns) AS cpu,
	       max(execution_time_ns) AS longest
	FROM temp.selected_runs WHERE NOT finished GROUP BY 1),
parts AS MATERIALIZED (
	SELECT s.hash, query, runs, logged, rows, failed, fullscan_steps, sorts, autoindexes,
	       iif(u.hash IS NOT NULL, coalesce(s.wall, 0) + u.wall, s.wall) AS wall, iif(u.hash IS NOT NULL, coalesce(s.cpu, 0) + u.cpu, s.cpu) AS cpu,
	       iif(u.hash IS NOT NULL, max(coalesce(s.longest, 0), u.longest), s.longest) AS longest,
	       s.samples AS samples, s.newest AS newest, u.hash IS NOT NULL AS is_unfinished
	FROM temp.selected_statements AS s LEFT JOIN unfinished AS u ON u.hash = s.hash),
lines AS MATERIALIZED (
	SELECT runs,
	       round(wall / 1e6, 4) AS wall_ms,
	       round(cpu / 1e6, 4) AS cpu_ms,
	       round(longest / 1e6, 4) AS max_ms,
	       round(coalesce(value, 0) / 1e6, 4) AS sampled_ms,
	       rows,
	       nullif(failed, iif(:for_table, 0, -1)) AS failed, logged,
	       substr(printf('%016x', hash), 1, iif(:for_table, 8, 16)) AS statement,
	       ltrim(iif(fullscan_steps > max(1000, 10 * rows),
	                 ', scan ' || iif(fullscan_steps < 10e6, (fullscan_steps / 1000) || 'k',
	                                  (fullscan_steps / 1000000) || 'M'), '')
	             || iif(sorts > 0, ', sort', '') || iif(autoindexes > 0, ', index', '')
	             || iif(is_unfinished, ', unfinished', ''), ', ') AS notes,
	       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
	FROM parts LEFT JOIN sampled USING (hash)
	ORDER BY CASE :by WHEN 'wall' THEN wall
	                  WHEN 'off' THEN wall - cpu
	                  WHEN 'samples' THEN samples
	                  WHEN 'start' THEN newest
	                  ELSE cpu END DESC, hash
	LIMIT coalesce(CAST(:limit AS INTEGER), 20))
SELECT * FROM lines
UNION ALL
SELECT sum(coalesce(runs, logged)), sum(wall_ms), sum(cpu_ms), max(max_ms), sum(sampled_ms), sum(rows), sum(failed), sum(logged), NULL, NULL,
       'sum of ' || count(*) || (SELECT iif(count(*) > (SELECT count(*) FROM lines), ' of ' || count(*), '') FROM temp.selected_statements)
FROM lines WHERE :for_table HAVING count(*) > 1;
