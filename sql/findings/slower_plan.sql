-- SPDX-License-Identifier: Apache-2.0
-- Statements whose newest plan is slower than another one that they had on the same database. after: the newest logged statement
-- between the two that may have changed plans. If it made an index, and no ANALYZE was recorded since, the index may have no
-- statistics.
WITH plans AS (
	SELECT hash, place, plan_hash, sum(ns) AS ns, sum(runs) AS runs, max(last_ns) AS last_ns, min(start_ns) AS start_ns
	FROM temp.selected_periods WHERE plan_hash IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(runs) >= 2),
newest AS (SELECT *, row_number() OVER (PARTITION BY hash, place ORDER BY last_ns DESC) AS age FROM plans)
SELECT n.hash AS hash, max(n.ns - n.runs * (o.ns / o.runs)) AS saved, NULL AS error, printf(iif(n.ns / n.runs < 10 * (o.ns / o.runs), '%.1f', '%.0f'), 1.0 * n.ns / n.runs / (o.ns / o.runs)) AS times,
       duration(1.0 * n.ns / n.runs) AS now, duration(1.0 * o.ns / o.runs) AS was, n.runs AS runs,
       strftime('%Y-%m-%d %H:%M:%S', n.start_ns / 1000000000, 'unixepoch') AS since,
       coalesce((SELECT ', after ' || text FROM schema_changes AS c WHERE c.place = n.place AND c.at_ns > o.last_ns AND c.at_ns <= n.start_ns ORDER BY c.at_ns DESC LIMIT 1), '') AS after,
       coalesce((SELECT CASE WHEN text LIKE 'CREATE %INDEX %' THEN 'ANALYZE, because CREATE INDEX gathers no statistics'
                             WHEN text LIKE 'DROP INDEX %' THEN 'make the index again' WHEN text LIKE 'ANALYZE%' THEN 'see by the plans which statistics mislead'
                             ELSE NULL END
                 FROM schema_changes AS c WHERE c.place = n.place AND c.at_ns > o.last_ns AND c.at_ns <= n.start_ns ORDER BY c.at_ns DESC LIMIT 1), 'not known: compare the two plans') AS cure
FROM newest AS n JOIN plans AS o ON o.hash = n.hash AND o.place = n.place AND o.plan_hash <> n.plan_hash AND o.start_ns < n.start_ns
-- Plans that alternate belong to different values, so no plan has changed. Another connection may change a little later.
WHERE n.age = 1 AND 10 * (o.last_ns - n.start_ns) < n.last_ns - n.start_ns AND 1.0 * n.ns / n.runs > 1.5 * (o.ns / o.runs)
GROUP BY n.hash, n.place;
