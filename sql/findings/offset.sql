-- SPDX-License-Identifier: Apache-2.0
-- Pages by OFFSET, which read the rows of all earlier pages and discard them.
SELECT f.hash AS hash, wall * (1 - 1.0 * rows / fullscan_steps) AS saved, NULL AS error, printf('%,d', fullscan_steps) AS visited, printf('%,d', rows) AS returned, duration(wall) AS took
FROM temp.finding_statements AS f
WHERE query LIKE '% OFFSET %' AND rows > 0 AND fullscan_steps > 5 * rows AND sorts = 0
  AND NOT EXISTS (SELECT 1 FROM temp.finding_nodes AS n WHERE n.hash = f.hash AND n.detail LIKE 'SCAN %' AND n.compared <> '');
