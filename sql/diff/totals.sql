-- SPDX-License-Identifier: Apache-2.0
-- The totals of both sides, see sides.sql. If a statement has different numbers of runs, the times of B are also
-- given for as many runs as A has.
WITH
a AS (SELECT * FROM side_totals WHERE side = 'A'),
b AS (SELECT * FROM side_totals WHERE side = 'B'),
alike AS MATERIALIZED (
	SELECT sum(wall * coalesce(factor, 1)) AS wall, sum(cpu * coalesce(factor, 1)) AS cpu,
	       max(coalesce(factor, 1) <> 1) AS differs
	FROM side_statements LEFT JOIN side_factors USING (side, hash) WHERE side = 'B'),
rows (line, what, a, b, is_time) AS (
	SELECT 1, 'runs', a.runs, b.runs, 0 FROM a, b
	UNION ALL
	SELECT 1, 'unfinished', a.unfinished, b.unfinished, 0 FROM a, b WHERE a.unfinished + b.unfinished > 0
	UNION ALL
	SELECT 2, 'samples', a.samples, b.samples, 0 FROM a, b
	UNION ALL
	SELECT 3, 'wall', a.wall, b.wall, 1 FROM a, b
	UNION ALL
	SELECT 4, 'cpu', a.cpu, b.cpu, 1 FROM a, b
	UNION ALL
	SELECT 5, 'wall, A''s runs', a.wall, alike.wall, 1 FROM a, alike WHERE differs
	UNION ALL
	SELECT 6, 'cpu, A''s runs', a.cpu, alike.cpu, 1 FROM a, alike WHERE differs)
SELECT 'SQLite' AS what, a.versions AS A, b.versions AS B, iif(a.versions = b.versions, '', 'another version') AS change
FROM a, b WHERE a.versions <> '' AND b.versions <> ''
UNION ALL
SELECT what,
       CASE WHEN is_time THEN printf('%.1f ms', a / 1e6) ELSE a END AS A,
       CASE WHEN is_time THEN printf('%.1f ms', b / 1e6) ELSE b END AS B,
       CASE WHEN a > 0 THEN printf('%+.1f %%', 100.0 * (b - a) / a) ELSE '' END AS change
FROM (SELECT * FROM rows ORDER BY line);
