-- SPDX-License-Identifier: Apache-2.0
-- How many statements with samples, of processes that came after number :before, have no plan that could be read, and of
-- how many; and the reasons.
WITH
known AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, max(EXISTS (SELECT 1 FROM programs WHERE id = q.program)) AS has_plan,
	       coalesce(max(m.reason), iif(max(q.finished), 'its runs ended where queryprof could not read the plan', 'no run has ended')) AS reason
	FROM queries AS q JOIN statements AS x ON x.id = q.statement LEFT JOIN missing_plans AS m ON m.program = q.program
	WHERE q.process > :before AND q.samples_cpu + q.samples_real > 0 AND q.library
	-- A call of SQLite's, as sqlite3_close(), is no statement.
	AND x.query NOT GLOB 'sqlite3_*(*)'
	GROUP BY 1),
-- What SQLite does not explain has no plan to be missed.
missed AS (
	SELECT reason, count(*) AS n FROM known
	WHERE NOT has_plan AND reason NOT LIKE 'only %' GROUP BY 1 ORDER BY n DESC, reason)
SELECT sum(n), (SELECT count(*) FROM known WHERE has_plan OR reason NOT LIKE 'only %'),
       group_concat(reason || ' (' || n || ')', ', ')
FROM missed HAVING sum(n) > 0;
