-- SPDX-License-Identifier: Apache-2.0
-- Many transactions that each wait for the disk.
SELECT hash, syncs * (1 - 1.0 / runs) AS saved, NULL AS error, printf('%,d', runs) AS runs, duration(syncs) AS took, duration(1.0 * syncs / runs) AS each,
       printf('%.0f', 100.0 * syncs / wall) AS share
FROM temp.finding_statements WHERE runs >= 20 AND syncs >= 0.3 * wall
  -- A statement inside a transaction syncs, too, if it does not fit into the cache.
  AND (query LIKE 'COMMIT%' OR query LIKE 'END%'
       OR NOT EXISTS (SELECT 1 FROM temp.finding_statements WHERE query LIKE 'COMMIT%' OR query LIKE 'END%' OR query LIKE 'RELEASE%'));
