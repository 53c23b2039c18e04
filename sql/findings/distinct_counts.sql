-- SPDX-License-Identifier: Apache-2.0
-- Several count(DISTINCT) over joins, as ORMs write counts of several relations: the rows of one joined table meet those of
-- the other, and DISTINCT removes them again.
WITH nested AS MATERIALIZED (
	SELECT hash, max(whole) AS whole, whole_error * whole_error AS square FROM temp.finding_nodes
	WHERE detail LIKE 'SEARCH % (%=?%)%' AND (around LIKE char(10) || 'SEARCH %' OR around LIKE char(10) || 'SCAN %') GROUP BY hash HAVING count(*) >= 2),
counted AS (
	SELECT hash, sum(ns) AS ns, sum(error * error) AS square FROM temp.finding_nodes WHERE detail LIKE 'USE TEMP B-TREE FOR count(DISTINCT)' GROUP BY hash)
SELECT n.hash AS hash, min(f.wall, c.ns + n.whole) AS saved, sqrt(c.square + n.square) AS error, duration(c.ns) AS took, duration(f.wall) AS whole,
       printf('%,d', f.vm_steps / f.runs) AS steps, printf('%,d', f.rows / f.runs) AS returned
FROM nested AS n JOIN counted AS c ON c.hash = n.hash JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE (length(query) - length(replace(lower(query), 'count(distinct', ''))) / length('count(distinct') >= 2
  AND f.vm_steps > 1000 * max(f.rows, f.runs) AND c.ns >= 0.15 * f.wall;
