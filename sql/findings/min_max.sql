-- SPDX-License-Identifier: Apache-2.0
-- min() and max() of a column in one SELECT. SQLite reads one end of the index only if the SELECT has just one of them,
-- otherwise the whole index.
WITH called AS (
	SELECT hash, query, rows, runs, fullscan_steps, substr(query, instr(lower(query), 'min(') + 4) AS least, substr(query, instr(lower(query), 'max(') + 4) AS most
	FROM temp.finding_statements
	WHERE query LIKE 'SELECT %min(%' AND query LIKE '%max(%' AND query NOT LIKE '% WHERE %' AND query NOT LIKE '%GROUP BY%' AND query NOT LIKE '%count(%'
	  AND query NOT LIKE '%sum(%' AND query NOT LIKE '%avg(%' AND query NOT LIKE '%total(%' AND query NOT LIKE '%(SELECT%' AND rows <= runs AND fullscan_steps > 100 * runs)
SELECT n.hash AS hash, sum(ns) AS saved, sqrt(sum(error * error)) AS error, duration(sum(ns)) AS took, printf('%,d', fullscan_steps) AS visited, c.name AS "column",
       coalesce(nullif(n.name, ''), "table") AS "table"
FROM (SELECT *, substr(least, 1, instr(least, ')') - 1) AS name FROM called WHERE lower(substr(least, 1, instr(least, ')'))) = lower(substr(most, 1, instr(most, ')')))) AS c
JOIN temp.finding_tables AS n ON n.hash = c.hash
WHERE n.detail LIKE 'SCAN % USING COVERING INDEX %' GROUP BY n.hash HAVING count(DISTINCT detail) = 1;
