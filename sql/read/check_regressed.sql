-- SPDX-License-Identifier: Apache-2.0
-- Statements of which a run takes longer than in another file, in temp.violations. After read/check.sql and
-- diff/means.sql, with the other file as schema `base`. :regressed is the allowed ratio.
--
-- Side A is the other file, with its times multiplied by the ratio. The test of diff/means.sql is used one-sided (2.5 %).
CREATE TEMP TABLE side_statements AS
SELECT 'A' AS side, hash, NULL AS query, n AS runs, ratio * x AS x, ratio * ratio * max(0, square - x * x / n) AS spread
FROM (SELECT normalized_query_hash AS hash, sum(calls) AS n, 1.0 * sum(execution_time_ns - prepare_time_ns) AS x,
             sum(execution_time_square) AS square
      FROM base.statement_counters GROUP BY 1),
     (SELECT CAST(:regressed AS REAL) AS ratio)
UNION ALL
SELECT 'B', hash, query, runs, x, max(0, wall_square - x * x / runs)
FROM (SELECT *, 1.0 * (wall - prepare) AS x FROM temp.selected_statements WHERE runs > 1 AND hash <> 0);

INSERT INTO temp.violations (check_name, hash, query, message, unknown)
SELECT 'regressed', hash, query,
       printf('a run takes %.4f ms, %.2f times as long as before (%.4f ms)', mb / 1e6, mb * ratio / ma, ma / ratio / 1e6), 0
FROM temp.side_means, (SELECT CAST(:regressed AS REAL) AS ratio)
WHERE mb > ma AND noise = '';
