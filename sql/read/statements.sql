-- SPDX-License-Identifier: Apache-2.0
-- Prints the statements of temp.lines. After read/statement_lines.sql and read/causes.sql. :by as there. :for_table
-- (fewer columns, ids cut, the sum of several lines in the last line). wall and cpu are of all runs, inside SQLite
-- and including preparing. sampled_ms is the sum of the samples, on the CPU clock with :by cpu, otherwise on the wall
-- clock. statement is the normalized_query_hash in hexadecimal; in a table, its beginning. p99_ms
-- is an upper bound if there are 100 runs or more and all are counted, which a table marks.
WITH sampled AS MATERIALIZED (
	SELECT hash, sum(value) AS value FROM temp.selected_sums
	WHERE :for_table IS NULL AND logged AND NOT is_worker
	  AND iif(:by = 'cpu', trace_type = 'CPU', trace_type IN (SELECT trace_type FROM temp.wall_types))
	GROUP BY hash),
shown AS MATERIALIZED (
	SELECT round(100 * share, 1) AS "share_%",
	       round(wall / 1e6, 4) AS wall_ms,
	       round(cpu / 1e6, 4) AS cpu_ms,
	       runs,
	       round(each / 1e6, 4) AS each_ms,
	       iif(:for_table AND is_bound AND p99 IS NOT NULL, printf('≤ %.4f', p99 / 1e6), round(p99 / 1e6, 4)) AS p99_ms,
	       iif(:for_table, NULL, round(longest / 1e6, 4)) AS max_ms,
	       iif(:for_table, NULL, round(coalesce(value, 0) / 1e6, 4)) AS sampled_ms,
	       rows,
	       iif(:for_table, NULL, failed) AS failed,
	       iif(:for_table, iif(runs IS NULL, nullif(logged, 0), NULL), logged) AS logged,
	       waits,
	       substr(printf('%016x', lines.hash), 1, iif(:for_table, 8, 16)) AS statement,
	       notes,
	       oneLine(query) AS query
	FROM temp.lines JOIN temp.line_causes USING (line) LEFT JOIN sampled ON sampled.hash = lines.hash
	ORDER BY line)
SELECT * FROM shown
UNION ALL
SELECT (SELECT round(100 * sum(share), 1) FROM temp.lines), sum(wall_ms), sum(cpu_ms), sum(runs), NULL, NULL, NULL, NULL, sum(rows), NULL, sum(logged), NULL, NULL, NULL,
       'sum of ' || count(*) || (SELECT iif(count(*) > (SELECT count(*) FROM shown), ' of ' || count(*), '') FROM temp.selected_statements)
FROM shown WHERE :for_table HAVING count(*) > 1;
