-- SPDX-License-Identifier: Apache-2.0
-- How many statements with samples, of processes that came after number :before, have no plan that could be read, and of
-- how many; and the reasons. After read/run_plans.sql.
WITH
known AS MATERIALIZED (
	SELECT hash, max(has_plan) AS has_plan, reason, max(rank) -- the reason of the greatest rank
	FROM temp.run_plans WHERE process > :before AND samples > 0 AND library GROUP BY 1),
-- What SQLite does not explain has no plan to be missed.
missed AS (
	SELECT reason, count(*) AS n FROM known
	WHERE NOT has_plan AND reason NOT LIKE 'only %' GROUP BY 1 ORDER BY n DESC, reason)
SELECT sum(n), (SELECT count(*) FROM known WHERE has_plan OR reason NOT LIKE 'only %'),
       group_concat(reason || ' (' || n || ')', ', ')
FROM missed HAVING sum(n) > 0;
