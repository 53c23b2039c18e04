-- SPDX-License-Identifier: Apache-2.0
-- The statements whose plan on side A differs from that on side B (see sides.sql), each with both plans. If a side has several
-- plans of a statement, the one that took most of the time is compared.
-- Parameter, which may be NULL: :limit.
WITH sums AS (
	SELECT side, hash, plan_hash, max(plan) AS plan, max(query) AS query, max(versions) AS versions, sum(runs) AS runs, sum(ns) AS ns
	FROM side_plans GROUP BY 1, 2, 3),
most AS (
	SELECT *, row_number() OVER (PARTITION BY side, hash ORDER BY ns DESC, plan_hash) AS place FROM sums)
SELECT printf('%016x', a.hash) AS statement, oneLine(b.query) AS query, a.plan AS plan_a, b.plan AS plan_b, coalesce(a.versions, '') AS versions_a,
       coalesce(b.versions, '') AS versions_b, duration(a.ns / a.runs) AS time_a, duration(b.ns / b.runs) AS time_b
FROM most AS a JOIN most AS b ON b.hash = a.hash
WHERE a.side = 'A' AND b.side = 'B' AND a.place = 1 AND b.place = 1 AND a.plan_hash <> b.plan_hash
ORDER BY abs(1.0 * b.ns / b.runs - 1.0 * a.ns / a.runs) * min(a.runs, b.runs) DESC, a.hash
LIMIT coalesce(CAST(:limit AS INTEGER), 3);
