-- SPDX-License-Identifier: Apache-2.0
-- A join with json_each() or json_tree() reads the JSON text of each row to find few rows.
SELECT n.hash AS hash, sum(whole) AS saved, sqrt(sum(whole_error * whole_error)) AS error, duration(sum(whole)) AS took, printf('%.0f', 100.0 * sum(whole) / f.wall) AS share,
       coalesce(nullif(t.name, ''), t."table") AS "table", printf('%,d', f.fullscan_steps) AS visited, printf('%,d', f.rows) AS returned
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
JOIN (SELECT DISTINCT hash, detail, name, "table" FROM temp.finding_tables WHERE detail LIKE 'SCAN %') AS t
  ON t.hash = n.hash AND n.around LIKE char(10) || t.detail || '%'
-- The index numbers of json_each() and json_tree().
WHERE (n.detail LIKE 'SCAN % VIRTUAL TABLE INDEX 1:' OR n.detail LIKE 'SCAN % VIRTUAL TABLE INDEX 3:') AND (query LIKE '%json\_each(%' ESCAPE '\' OR query LIKE '%json\_tree(%' ESCAPE '\')
  AND f.fullscan_steps > 20 * max(f.rows, 1) AND f.fullscan_steps > 100 * f.runs
GROUP BY n.hash HAVING sum(whole) >= 0.3 * f.wall;
