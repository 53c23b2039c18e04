-- SPDX-License-Identifier: Apache-2.0
-- A program that asks for its tables, columns and indexes again and again, as an ORM or a migration tool may do for each request.
-- One row, for the statement that takes most of the time.
WITH asking AS MATERIALIZED (
	SELECT hash, wall, runs FROM temp.finding_statements
	WHERE query LIKE 'PRAGMA%table\_info%' ESCAPE '\' OR query LIKE 'PRAGMA%table\_xinfo%' ESCAPE '\' OR query LIKE 'PRAGMA%index\_list%' ESCAPE '\' OR query LIKE 'PRAGMA%index\_info%' ESCAPE '\'
	   OR query LIKE 'PRAGMA%index\_xinfo%' ESCAPE '\' OR query LIKE 'PRAGMA%foreign\_key\_list%' ESCAPE '\' OR query LIKE 'PRAGMA table\_list%' ESCAPE '\'
	   OR query LIKE 'SELECT%FROM sqlite\_master%' ESCAPE '\' OR query LIKE 'SELECT%FROM sqlite\_schema%' ESCAPE '\')
SELECT hash, saved, NULL AS error, printf('%,d', runs) AS runs, duration(saved) AS took
FROM (SELECT hash, max(wall), sum(wall) AS saved, sum(runs) AS runs FROM asking)
WHERE runs >= 100;
