-- SPDX-License-Identifier: Apache-2.0
-- A backup in steps begins anew when another connection has changed the database, and writes all pages again. Only a backup
-- writes to a database outside statements.
WITH backups AS MATERIALIZED (
	SELECT r.normalized_query_hash AS hash, sum(write_bytes) AS bytes FROM temp.selected_runs AS r
	WHERE r.normalized_query_hash IN (SELECT hash FROM temp.finding_statements WHERE query LIKE 'sqlite3\_backup\_step%' ESCAPE '\') GROUP BY 1),
written AS MATERIALIZED (
	SELECT database, sum(writes) AS writes, sum(rewritten) AS rewritten, sum(wal_bytes + database_bytes) AS bytes
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM backups)) CROSS JOIN page_sums WHERE statement = 0 GROUP BY database)
SELECT b.hash AS hash, f.wall * rewritten / writes AS saved, NULL AS error, printf('%,d', rewritten) AS again, printf('%,d', writes) AS pages, fileName(database) AS database,
       printf('%,.1f MB', w.bytes / 1e6) AS bytes, duration(f.wall) AS took
FROM backups AS b JOIN temp.finding_statements AS f ON f.hash = b.hash JOIN written AS w ON w.bytes BETWEEN 0.5 * b.bytes AND b.bytes
WHERE rewritten >= 0.2 * writes AND rewritten >= 100
GROUP BY b.hash HAVING max(w.bytes);
