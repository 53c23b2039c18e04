-- SPDX-License-Identifier: Apache-2.0
-- Statements that stay open because the program works between two rows.
SELECT hash, outside AS saved, NULL AS error, duration(outside) AS took, duration(wall) AS inside, printf('%,d', rows) AS rows, duration(1.0 * outside / rows) AS each
FROM temp.finding_statements WHERE outside > 50000000 AND rows >= 10
  -- Fetching a row costs every program some time, less than the second bound. It counts if it is more than all time in SQLite.
  AND (outside > 3 * wall AND outside > 100000 * rows OR outside > 5 * wall AND outside > 2000 * rows AND outside > (SELECT sum(wall) FROM temp.finding_statements));
