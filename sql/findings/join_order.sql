-- SPDX-License-Identifier: Apache-2.0
-- A scan of a table whose rows nearly all have no partner: a Bloom filter on a later table of the join says so.
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
	SELECT hash, max(ns) AS most, ns, error, coalesce(nullif(name, ''), "table") AS shown FROM temp.finding_tables WHERE detail LIKE 'SCAN %' GROUP BY hash)
SELECT c.hash AS hash, (c.ns + f.ns) * (1 - 1.0 * passed / checked) AS saved, sqrt(c.error * c.error + f.square) AS error, shown AS "table",
       coalesce(nullif(tableOf(s.query, f.name), ''), f.name) AS other, printf('%.1f', CAST(1000.0 * (checked - passed) / checked AS INTEGER) / 10.0) AS share,
       duration(c.ns + f.ns) AS took, printf('%,d of %,d rows pass it', passed, checked) AS passed
FROM filters AS b JOIN filtered AS f ON f.hash = b.hash JOIN scans AS c ON c.hash = b.hash JOIN temp.finding_statements AS s ON s.hash = b.hash;
