-- SPDX-License-Identifier: Apache-2.0
-- What exceeds the limits of `queryprof check`, in temp.violations. After read/selected.sql, without a selection, and
-- read/check_limits.sql.
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
	FROM temp.run_sums WHERE finished AND EXISTS (SELECT 1 FROM temp.check_limits WHERE max_scan IS NOT NULL) GROUP BY 1),
scans AS (
	SELECT s.hash, query, coalesce(most, 0) AS most, max(0, fullscan_steps - coalesce(l.scanned, 0)) AS rest,
	       max(1, coalesce(s.runs, s.logged) - coalesce(l.runs, 0)) AS rest_runs, m.max_scan AS may
	FROM temp.selected_statements AS s JOIN temp.check_limits AS m ON m.hash = s.hash AND m.max_scan IS NOT NULL
	LEFT JOIN logged AS l ON l.hash = s.hash)
SELECT 'max-scan', hash, query,
       iif(most > may, printf('a run visited %,d rows of whole tables', most),
           printf('%,d %s visited %,d rows of whole tables each, on average', rest_runs, iif(rest_runs = 1, 'run', 'runs'),
                  rest / rest_runs)),
       most <= may AND rest <= may * rest_runs
FROM scans
WHERE most > may OR rest > may;

INSERT INTO violations (check_name, hash, query, message, unknown)
WITH checked AS (SELECT * FROM temp.selected_statements JOIN temp.check_limits USING (hash))
SELECT 'no-sort', hash, query, printf('%,d %s in %,d %s', sorts, iif(sorts = 1, 'sort', 'sorts'),
                                      coalesce(runs, logged), iif(coalesce(runs, logged) = 1, 'run', 'runs')), 0
FROM checked WHERE no_sort AND sorts > 0
UNION ALL
SELECT 'no-auto-index', hash, query, printf('%,d rows put into automatic indexes in %,d %s', autoindexes, coalesce(runs, logged),
                                            iif(coalesce(runs, logged) = 1, 'run', 'runs')), 0
FROM checked WHERE no_auto_index AND autoindexes > 0
UNION ALL
SELECT 'max-time', hash, query, printf('the longest run took %.3f ms', longest / 1e6), 0
FROM checked WHERE longest > max_time;

-- A burst names the statement with most runs in it, by one of its texts.
INSERT INTO violations (check_name, hash, query, message, unknown)
WITH most AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, max(b.most_runs) AS runs
	FROM bursts AS b JOIN statements AS x ON x.query = b.most
	WHERE EXISTS (SELECT 1 FROM temp.check_limits WHERE max_runs IS NOT NULL) GROUP BY 1)
SELECT 'max-runs', hash, query, printf('%,d %s in one burst', b.runs, iif(b.runs = 1, 'run', 'runs')), b.runs <= max_runs
FROM (SELECT hash, max_runs, s.query AS query, coalesce(o.runs, 0) AS runs, coalesce(s.runs, 0) - s.logged AS unlogged
      FROM temp.selected_statements AS s JOIN temp.check_limits AS m USING (hash) LEFT JOIN most AS o USING (hash)
      WHERE max_runs IS NOT NULL) AS b
WHERE b.runs > max_runs OR unlogged > max_runs;
