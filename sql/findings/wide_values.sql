-- SPDX-License-Identifier: Apache-2.0
-- Statements that read all columns of many rows, most of whose bytes are on overflow pages: values of more than about a page.
WITH reading AS MATERIALIZED (
	SELECT statement AS hash, max(table_name) FILTER (WHERE kind = 6) AS "table", sum(read_bytes + wal_read_bytes) FILTER (WHERE kind = 6) AS bytes,
	       sum(read_bytes + wal_read_bytes) AS all_bytes
	FROM page_sums WHERE statement IN (SELECT hash FROM temp.finding_statements WHERE query LIKE 'SELECT%*%FROM%') GROUP BY 1)
SELECT r.hash AS hash, NULL AS saved, NULL AS error, "table", printf('%,.0f kB', bytes / 1e3 / rows) AS size, printf('%,.1f MB', bytes / 1e6) AS all_of_them, printf('%,d', rows) AS rows
FROM reading AS r JOIN temp.finding_statements AS f ON f.hash = r.hash
WHERE f.rows >= 5 * f.runs AND bytes >= 0.5 * all_bytes AND bytes >= 8000 * rows AND wall >= 0.1 * (SELECT sum(wall) FROM temp.finding_statements)
  AND (query LIKE 'SELECT *%' OR query LIKE 'SELECT %.*%');
