-- SPDX-License-Identifier: Apache-2.0
-- Statements of which a run takes longer than in another file, in temp.violations. After read/check.sql, with the other
-- file as schema `base`. :regressed is the allowed ratio.
--
-- The mean time of a run is compared with that of the other file, multiplied by the allowed ratio, by Welch's t-test
-- (one-sided, 2.5 %; see diff/statements.sql). One run alone shows no variation, so it proves nothing.
INSERT INTO temp.violations (check_name, hash, query, message, unknown)
WITH before AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, sum(calls) AS n, 1.0 * sum(execution_time_ns - prepare_time_ns) AS x,
	       sum(execution_time_square) AS square
	FROM base.statement_counters GROUP BY 1 HAVING sum(calls) > 1),
means AS (
	SELECT s.hash, s.query, 1.0 * (s.wall - s.prepare) / runs AS now, x / n AS was, runs AS nb, n AS na,
	       max(0, s.wall_square - 1.0 * (s.wall - s.prepare) * (s.wall - s.prepare) / runs) / (runs - 1) / runs AS eb,
	       max(0, b.square - x * x / n) / (n - 1) / n AS ea
	FROM before AS b JOIN temp.selected_statements AS s ON s.hash = b.hash
	WHERE runs > 1 AND s.hash <> 0),
scaled AS (SELECT *, CAST(:regressed AS REAL) AS ratio FROM means),
tested AS (
	SELECT *, ratio * ratio * ea AS e,
	       (ratio * ratio * ea + eb) * (ratio * ratio * ea + eb)
	       / (ratio * ratio * ea * ratio * ratio * ea / (na - 1) + eb * eb / (nb - 1)) AS d
	FROM scaled)
SELECT 'regressed', hash, query, printf('a run takes %.4f ms, %.2f times as long as before (%.4f ms)', now / 1e6, now / was, was / 1e6), 0
FROM tested
WHERE now > ratio * was
  AND now - ratio * was >= sqrt(e + eb) * coalesce(1.96 + 2.37 / d + 2.82 / d / d + 2.56 / d / d / d, 0);
