-- SPDX-License-Identifier: Apache-2.0
-- UNION, INTERSECT and EXCEPT compare each row with all others, in a temporary index. Only UNION has another form.
SELECT n.hash AS hash, sum(ns) AS saved, sqrt(sum(error * error)) AS error, duration(sum(ns)) AS took, printf('%.0f', 100.0 * sum(ns) / f.wall) AS share
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE detail = 'UNION USING TEMP B-TREE'
  -- A recursive query may need it to end.
  AND query NOT LIKE 'WITH RECURSIVE %'
GROUP BY n.hash HAVING sum(ns) >= 0.3 * f.wall;
