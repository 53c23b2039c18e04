-- SPDX-License-Identifier: Apache-2.0
-- A connection for every few statements. Each connection reads the schema before its first statement, and closing the last
-- connection of a WAL copies the WAL into the database and deletes it.
SELECT hash, closing + preparing AS saved, NULL AS error, printf('%,d', connections) AS connections, printf('%,d', runs) AS runs,
       duration(closing) AS closing, duration(preparing) AS preparing
FROM temp.finding_connections;
