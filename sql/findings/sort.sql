-- SPDX-License-Identifier: Apache-2.0
-- Sorting, of the statement itself.
SELECT n.hash AS hash, sum(ns) AS saved, sqrt(sum(error * error)) AS error,
       substr(detail, length('USE TEMP B-TREE FOR ') + 1) AS what, duration(sum(ns)) AS took, printf(iif(max(sorts) = 1, '%,d sort', '%,d sorts'), max(sorts)) AS sorts
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE (detail LIKE 'USE TEMP B-TREE FOR %ORDER BY' OR detail LIKE 'USE TEMP B-TREE FOR GROUP BY' OR detail LIKE 'USE TEMP B-TREE FOR DISTINCT')
  AND query NOT LIKE '%ORDER BY RANDOM()%' -- random_order
  -- Sorting inside a view or subquery that is a finding of its own (whole_view).
  AND NOT EXISTS (SELECT 1 FROM temp.finding_views AS v WHERE v.hash = n.hash AND instr(n.around || char(10), char(10) || v.detail || char(10)))
GROUP BY n.hash, detail;
