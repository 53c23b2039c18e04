-- SPDX-License-Identifier: Apache-2.0
-- What exceeds the limits of `queryprof check`, in temp.violations. After read/selected.sql, without a selection.
-- Parameters, of which NULL checks nothing: :max_scan (rows), :no_sort, :no_auto_index, :max_time (ns).
--
-- message: what was found. unknown: a run that was not logged may exceed the limit, because only the sum of these runs
-- is known.
DROP TABLE IF EXISTS temp.violations;
CREATE TEMP TABLE violations (
	check_name TEXT NOT NULL, hash INTEGER NOT NULL, query TEXT NOT NULL, message TEXT NOT NULL, unknown INTEGER NOT NULL,
	caller TEXT NOT NULL DEFAULT '', caller_function TEXT NOT NULL DEFAULT '');

INSERT INTO violations (check_name, hash, query, message, unknown)
WITH logged AS MATERIALIZED (
	SELECT hash, sum(runs) AS runs, sum(fullscan_steps) AS scanned, max(most_scanned) AS most
	FROM temp.run_sums WHERE finished AND :max_scan GROUP BY 1),
scans AS (
	SELECT s.hash, query, coalesce(most, 0) AS most, max(0, fullscan_steps - coalesce(l.scanned, 0)) AS rest,
	       max(1, coalesce(s.runs, s.logged) - coalesce(l.runs, 0)) AS rest_runs
	FROM temp.selected_statements AS s LEFT JOIN logged AS l ON l.hash = s.hash
	WHERE :max_scan)
SELECT 'max-scan', hash, query,
       iif(most > CAST(:max_scan AS INTEGER), printf('a run visited %,d rows of whole tables', most),
           printf('%,d runs visited %,d rows of whole tables each, on average', rest_runs, rest / rest_runs)),
       most <= CAST(:max_scan AS INTEGER) AND rest <= CAST(:max_scan AS INTEGER) * rest_runs
FROM scans
WHERE most > CAST(:max_scan AS INTEGER) OR rest > CAST(:max_scan AS INTEGER);

INSERT INTO violations (check_name, hash, query, message, unknown)
SELECT 'no-sort', hash, query, printf('%,d %s in %,d %s', sorts, iif(sorts = 1, 'sort', 'sorts'),
                                      coalesce(runs, logged), iif(coalesce(runs, logged) = 1, 'run', 'runs')), 0
FROM temp.selected_statements WHERE :no_sort AND sorts > 0
UNION ALL
SELECT 'no-auto-index', hash, query, printf('%,d rows put into automatic indexes in %,d %s', autoindexes, coalesce(runs, logged),
                                            iif(coalesce(runs, logged) = 1, 'run', 'runs')), 0
FROM temp.selected_statements WHERE :no_auto_index AND autoindexes > 0
UNION ALL
SELECT 'max-time', hash, query, printf('the longest run took %.3f ms', longest / 1e6), 0
FROM temp.selected_statements WHERE longest > CAST(:max_time AS INTEGER);
