-- SPDX-License-Identifier: Apache-2.0
-- The statements of temp.lines, the costliest first, with the numbers that `queryprof queries` shows. After
-- read/statement_lines.sql and read/causes.sql. :no_text: if it is not NULL, no text of a statement, and no name from
-- one. p50: like p99 there. Long texts are cut; then is_cut is 1.
WITH parts AS (
	SELECT normalized_query_hash AS hash, key AS bucket, sum(value) AS runs FROM statement_stats, json_each(histogram)
	WHERE normalized_query_hash IN (SELECT hash FROM temp.lines)
	GROUP BY 1, 2),
middles AS MATERIALIZED (
	SELECT hash, min(bucket) AS bucket
	FROM (SELECT hash, bucket, sum(runs) OVER (PARTITION BY hash ORDER BY bucket) AS upto, sum(runs) OVER (PARTITION BY hash) AS whole FROM parts)
	WHERE whole > 0 AND 2 * upto >= whole GROUP BY 1)
SELECT printf('%016x', l.hash) AS statement, iif(:no_text, NULL, substr(l.query, 1, 10000)) AS query,
       length(l.query) > 10000 AS is_cut, round(100 * l.share, 1) AS share, round(l.wall / 1e6, 4) AS wall_ms,
       round(l.cpu / 1e6, 4) AS cpu_ms, l.runs, l.logged, round(l.each / 1e6, 4) AS each_ms,
       -- A histogram covers all runs, not only the selected ones.
       iif(l.runs IS NULL OR m.bucket IS NULL, NULL, round(iif(m.bucket < 23, min(1024 << m.bucket, l.longest), l.longest) / 1e6, 4)) AS p50_ms,
       round(l.p99 / 1e6, 4) AS p99_ms, round(l.longest / 1e6, 4) AS max_ms, l.rows, l.failed, l.is_unfinished,
       c.waits, iif(:no_text, '', c.notes) AS notes
FROM temp.lines AS l JOIN temp.line_causes AS c USING (line) LEFT JOIN middles AS m ON m.hash = l.hash
ORDER BY line;
