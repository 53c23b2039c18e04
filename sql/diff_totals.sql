-- SPDX-License-Identifier: Apache-2.0
-- Two sides as a whole: see diff_sides.sql.
WITH rows (line, what, a, b, divisor) AS (
	SELECT 1, 'runs', a.runs, b.runs, NULL FROM side_totals AS a, side_totals AS b WHERE a.side < b.side
	UNION ALL
	SELECT 2, 'samples', a.samples, b.samples, NULL FROM side_totals AS a, side_totals AS b WHERE a.side < b.side
	UNION ALL
	SELECT 3, 'wall', a.wall / 1e6, b.wall / 1e6, 1 FROM side_totals AS a, side_totals AS b WHERE a.side < b.side
	UNION ALL
	SELECT 4, 'cpu', a.cpu / 1e6, b.cpu / 1e6, 1 FROM side_totals AS a, side_totals AS b WHERE a.side < b.side
	UNION ALL
	SELECT 5, 'wall a run', a.wall / 1e6 / a.runs, b.wall / 1e6 / b.runs, 1
	FROM side_totals AS a, side_totals AS b WHERE a.side < b.side AND a.runs <> b.runs
	UNION ALL
	SELECT 6, 'cpu a run', a.cpu / 1e6 / a.runs, b.cpu / 1e6 / b.runs, 1
	FROM side_totals AS a, side_totals AS b WHERE a.side < b.side AND a.runs <> b.runs)
SELECT what,
       CASE WHEN divisor THEN printf('%.1f ms', a) ELSE a END AS A,
       CASE WHEN divisor THEN printf('%.1f ms', b) ELSE b END AS B,
       CASE WHEN a > 0 THEN printf('%+.1f %%', 100.0 * (b - a) / a) ELSE '' END AS change
FROM rows
ORDER BY line;
