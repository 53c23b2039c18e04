-- SPDX-License-Identifier: Apache-2.0
-- All rows of a table, sorted to choose a few at random.
SELECT hash, wall * (1 - 1.0 * rows / fullscan_steps) AS saved, NULL AS error, printf('%,d', fullscan_steps) AS visited, printf('%,d', rows) AS returned, duration(wall) AS took
FROM temp.finding_statements
WHERE query LIKE '%ORDER BY RANDOM()%' AND rows > 0 AND fullscan_steps > 20 * rows;
