-- SPDX-License-Identifier: Apache-2.0
-- A scan of a table in a join whose rows nearly all have no partner. A Bloom filter on a later table of the join shows that,
-- or the number of rows that a plain join returns.
WITH filters AS (
	SELECT x.normalized_query_hash AS hash, sum(l.loops) AS checked, sum(l.rows) AS passed
	FROM plan_loops AS l CROSS JOIN queries AS q ON q.id = l.query JOIN temp.selected AS s ON s.id = q.id JOIN statements AS x ON x.id = q.statement
	WHERE l.node = -4 GROUP BY 1 HAVING sum(l.rows) < 0.05 * sum(l.loops)),
-- SQLite counts the filters of a statement together. A filter may have had no sample.
filtered AS (
	SELECT s.hash AS hash, max(substr(p.detail, 17, instr(p.detail || ' (', ' (') - 17)) AS name,
	       (SELECT total(ns) FROM temp.finding_nodes AS n WHERE n.hash = s.hash AND n.detail GLOB 'BLOOM FILTER ON *') AS ns,
	       (SELECT total(error * error) FROM temp.finding_nodes AS n WHERE n.hash = s.hash AND n.detail GLOB 'BLOOM FILTER ON *') AS square
	FROM (SELECT DISTINCT hash, program FROM temp.finding_programs) AS s JOIN plan_nodes AS p ON p.program = s.program
	WHERE p.detail GLOB 'BLOOM FILTER ON *' GROUP BY s.hash HAVING count(DISTINCT p.detail) = 1),
scans AS (
	SELECT hash, max(ns) AS most, ns, error, coalesce(nullif(name, ''), "table") AS shown FROM temp.finding_tables WHERE detail LIKE 'SCAN %' GROUP BY hash),
-- A join of two tables that returns each pair. At most as many rows of the scanned table have a partner as it returns rows.
plain AS (
	SELECT c.hash AS hash, c.ns + n.ns AS ns, sqrt(c.error * c.error + n.error * n.error) AS error, shown, n."table" AS other, c.query AS query, visited, returned
	FROM temp.finding_scans AS c JOIN temp.finding_tables AS n ON n.hash = c.hash AND n.detail LIKE 'SEARCH %' AND n.around = char(10) || c.detail
	WHERE c.compared = '' AND c.around = '' AND c.query LIKE 'SELECT%' AND returned > 0
	  AND (SELECT count(*) FROM temp.finding_tables AS t WHERE t.hash = c.hash) = 2 AND c.query NOT LIKE '%(SELECT%' AND c.query NOT LIKE '%( SELECT%'
	  AND c.query NOT LIKE '% GROUP BY %' AND c.query NOT LIKE '%DISTINCT%' AND c.query NOT LIKE '% LIMIT %' AND c.query NOT LIKE '% OVER %'
	  AND c.query NOT LIKE '% UNION %' AND c.query NOT LIKE '% EXCEPT %' AND c.query NOT LIKE '% INTERSECT %'
	  AND c.query NOT LIKE '%count(%' AND c.query NOT LIKE '%sum(%' AND c.query NOT LIKE '%min(%' AND c.query NOT LIKE '%max(%' AND c.query NOT LIKE '%avg(%'
	  AND c.query NOT LIKE '%total(%' AND c.query NOT LIKE '%group\_%(%' ESCAPE '\'),
both AS (
	SELECT c.hash AS hash, (c.ns + f.ns) * (1 - 1.0 * passed / checked) AS saved, sqrt(c.error * c.error + f.square) AS error, shown AS "table",
	       coalesce(nullif(tableOf(s.query, f.name), ''), f.name) AS other, printf('%.1f', CAST(1000.0 * (checked - passed) / checked AS INTEGER) / 10.0) AS share,
	       duration(c.ns + f.ns) AS took, 'in the Bloom filter on' AS searched,
	       printf('%,d of %,d rows pass it', passed, checked) AS passed, 0 AS has_or, 0 AS is_left
	FROM filters AS b JOIN filtered AS f ON f.hash = b.hash JOIN scans AS c ON c.hash = b.hash JOIN temp.finding_statements AS s ON s.hash = b.hash
	UNION ALL
	SELECT hash, ns * (1 - 1.0 * returned / visited), error, shown, coalesce(nullif(tableOf(query, other), ''), other),
	       printf('%.1f', CAST(1000.0 * (visited - returned) / visited AS INTEGER) / 10.0), duration(ns), 'in the look-ups of',
	       printf('%,d rows visited, %,d returned, in all runs', visited, returned), query LIKE '% OR %', query LIKE '% LEFT JOIN %' OR query LIKE '% LEFT OUTER JOIN %'
	FROM plain)
SELECT *, CASE WHEN is_left THEN printf('if rows without a match in %s are not wanted, JOIN instead of LEFT JOIN, and a condition that compares a column of %s itself: SQLite can then read %s first', other, other, other)
               WHEN has_or THEN 'if OR joins conditions on several columns: a UNION of one SELECT for each of them, with an index on each column'
               ELSE printf('ANALYZE; if the plan stays the same, %s CROSS JOIN %s reads %s first, and needs an index on the joined column of %s', other, "table", other, "table") END AS cure
FROM both;
