-- SPDX-License-Identifier: Apache-2.0
-- The hundred slowest logged runs of each of the first fifty statements of temp.lines. After read/statement_lines.sql.
-- at_ms: when the run began, in ms since 1970.
WITH placed AS (
	SELECT normalized_query_hash AS hash, query_start_ns, execution_time_ns, cpu_time_ns, result_rows, exception_code, finished,
	       row_number() OVER (PARTITION BY normalized_query_hash ORDER BY execution_time_ns DESC, id) AS place
	FROM temp.selected_runs WHERE query_start_ns AND normalized_query_hash IN (SELECT hash FROM temp.lines WHERE line <= 50))
SELECT printf('%016x', hash) AS statement, round(query_start_ns / 1e6, 3) AS at_ms, round(execution_time_ns / 1e6, 3) AS wall_ms,
       iif(finished, result_rows, NULL) AS rows, exception_code <> 0 AS failed, finished
FROM placed WHERE place <= 100 ORDER BY hash, place;
