-- SPDX-License-Identifier: Apache-2.0
-- A correlated subquery that takes most of the time of a statement with many rows, unless one of its scans lacks an index,
-- which is a finding of its own.
SELECT n.hash AS hash, sum(whole) AS saved, sqrt(sum(whole_error * whole_error)) AS error, duration(sum(whole)) AS took,
       printf('%.0f', 100.0 * sum(whole) / f.wall) AS share, printf('%,d', runs) AS runs,
       printf('%,d rows of scans visited, %,d returned', fullscan_steps, rows) AS seen,
       -- An inner table that is searched for a range alone is counted or summed up for each row: a rank, a running total.
       iif(EXISTS (SELECT 1 FROM temp.finding_nodes AS i WHERE i.hash = n.hash AND instr(i.around || char(10), char(10) || n.detail || char(10))
                   AND (i.detail LIKE 'SEARCH % (%>?)' OR i.detail LIKE 'SEARCH % (%<?)') AND i.detail NOT LIKE '%=?%'),
           'a window function, which reads the rows once: rank() OVER (ORDER BY ...) or sum(...) OVER (ORDER BY ...)',
           'JOIN (SELECT key, max(...) FROM ... GROUP BY key), which reads the inner table once') AS instead
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE detail GLOB 'CORRELATED * SUBQUERY*' AND around NOT LIKE '%CORRELATED %' AND query NOT LIKE '%EXISTS%'
  AND max(fullscan_steps, rows) >= 1000 * runs
  AND NOT EXISTS (SELECT 1 FROM temp.finding_scans AS c WHERE c.hash = n.hash AND c.around LIKE '%CORRELATED %' AND c.compared <> '')
GROUP BY n.hash HAVING sum(whole) >= 0.5 * f.wall;
