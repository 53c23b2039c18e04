-- SPDX-License-Identifier: Apache-2.0
-- IN (SELECT column FROM table): SQLite copies the column of all rows into a temporary index in each run, unless an index
-- begins with that column.
SELECT n.hash AS hash, sum(whole) AS saved, sqrt(sum(whole_error * whole_error)) AS error, duration(sum(whole)) AS took, printf('%.0f', 100.0 * sum(whole) / f.wall) AS share,
       t."table" AS "table", printf(iif(f.runs = 1, '%,d run', '%,d runs'), f.runs) AS runs
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
JOIN (SELECT hash, around, max("table") AS "table" FROM temp.finding_tables WHERE detail LIKE 'SCAN %' AND compared = '' GROUP BY hash, around HAVING count(*) = 1) AS t
  ON t.hash = n.hash AND t.around = char(10) || n.detail || n.around
WHERE detail LIKE 'LIST SUBQUERY %'
  -- Rows of another table are looked up in it. Otherwise the list itself may be the outer loop, which needs all its values.
  AND EXISTS (SELECT 1 FROM temp.finding_tables AS o WHERE o.hash = n.hash AND o.detail LIKE 'SCAN %' AND o.around = n.around)
  -- It has no other parts.
  AND (SELECT count(*) FROM temp.finding_nodes AS i WHERE i.hash = n.hash AND instr(i.around || char(10), char(10) || n.detail || char(10))) = 1
GROUP BY n.hash, n.detail HAVING sum(whole) >= 0.3 * f.wall;
