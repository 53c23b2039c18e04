-- SPDX-License-Identifier: Apache-2.0
-- Statements that stay open because the program works between two rows.
SELECT hash, outside AS saved, NULL AS error, duration(outside) AS took, duration(wall) AS inside, printf('%,d', rows) AS rows
FROM temp.finding_statements WHERE outside > 3 * wall AND outside > 50000000 AND rows >= 10 AND outside > 100000 * rows;
