-- SPDX-License-Identifier: Apache-2.0
-- Of the statements with samples, of the processes after number :before: how many have no known plan, how many there
-- are, and the reasons. After read/run_plans.sql.
WITH
known AS MATERIALIZED (
	SELECT hash, max(has_plan) AS has_plan, reason, max(rank) -- the reason of the greatest rank
	FROM temp.run_plans WHERE process > :before AND samples > 0 AND library GROUP BY 1),
-- Statements that SQLite does not explain cannot lack a plan: their reason begins as in src/sqlite/plan/missing.h.
missed AS (
	SELECT reason, count(*) AS n FROM known
	WHERE NOT has_plan AND reason NOT LIKE 'SQLite explains only %' GROUP BY 1 ORDER BY n DESC, reason)
SELECT sum(n), (SELECT count(*) FROM known WHERE has_plan OR reason NOT LIKE 'SQLite explains only %'),
       group_concat(reason || ' (' || n || ')', ', ')
FROM missed HAVING sum(n) > 0;
