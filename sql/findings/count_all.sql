-- SPDX-License-Identifier: Apache-2.0
-- SELECT count(*) of a whole table, again and again: SQLite has no counter of rows, so it reads the table or its smallest index.
-- It does that in one opcode, and counts no rows of the scan.
SELECT f.hash AS hash, wall * (1 - 1.0 / runs) AS saved, NULL AS error, substr(p.scanned, 1, instr(p.scanned || ' ', ' ') - 1) AS "table",
       printf('%,d', runs) AS runs, duration(wall / runs) AS each, duration(wall) AS took
FROM temp.finding_statements AS f
JOIN (SELECT x.normalized_query_hash AS hash, max(substr(n.detail, iif(n.detail LIKE 'SCAN TABLE %', 12, 6))) AS scanned
      FROM statements AS x JOIN programs AS g ON g.statement = x.id JOIN plan_nodes AS n ON n.program = g.id
      GROUP BY 1, g.id HAVING count(*) = 1 AND max(n.detail LIKE 'SCAN %' AND n.detail NOT LIKE '% VIRTUAL TABLE %')) AS p ON p.hash = f.hash
WHERE query LIKE 'SELECT count(%) FROM %' AND query NOT LIKE '% WHERE %' AND fullscan_steps = 0 AND rows = runs AND runs >= 5 AND coalesce(cpu, wall) > 1000000.0 * runs
GROUP BY f.hash;
