-- SPDX-License-Identifier: Apache-2.0
-- The statements with the most bytes read and written: in all and for each of their runs. After pages.sql.
WITH sums AS MATERIALIZED (
	SELECT hash, sum(wal_bytes) AS wal_bytes, sum(database_bytes) AS database_bytes, sum(journal_bytes) AS journal_bytes, sum(bytes_read) AS bytes_read,
	       sum(bytes_written) AS bytes_written, sum(writes) AS writes, sum(writes - rewritten) AS pages
	FROM temp.page_rows GROUP BY hash),
counted AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, sum(calls) AS calls, sum(rows) AS rows FROM statement_counters WHERE normalized_query_hash <> 0 GROUP BY 1),
all_bytes AS MATERIALIZED (SELECT max(sum(bytes_read + bytes_written), 1) AS bytes FROM temp.page_databases),
largest AS MATERIALIZED (
	SELECT hash, group_concat(printf('%.0f %% ', 100.0 * bytes / whole) || what || in_file, ', ') AS trees
	FROM (SELECT r.hash AS hash, t.what AS what,
	             iif((SELECT count(*) FROM temp.page_databases) > 1, ' in ' || fileName(t.database), '') AS in_file, sum(r.bytes_written) AS bytes, sum(sum(r.bytes_written)) OVER (PARTITION BY r.hash) AS whole,
	             row_number() OVER (PARTITION BY r.hash ORDER BY sum(r.bytes_written) DESC, t.what) AS place
	      FROM temp.page_rows AS r JOIN temp.page_trees AS t ON t.database = r.database AND t.btree = r.btree AND (t.btree <> '' OR t.kind = r.kind)
	      WHERE r.bytes_written > 0 GROUP BY r.hash, t.tree)
	WHERE place <= 3 GROUP BY hash)
SELECT round(100.0 * (bytes_read + bytes_written) / bytes, 1) AS "share_%",
       round(wal_bytes / 1e6, 3) AS wal_mb,
       round(database_bytes / 1e6, 3) AS database_mb,
       round(nullif(journal_bytes, 0) / 1e6, 3) AS journal_mb,
       round(bytes_read / 1e6, 3) AS read_mb,
       calls AS runs,
       iif(calls, CAST(1.0 * bytes_written / calls + 0.5 AS INTEGER), NULL) AS run_written_bytes,
       iif(calls, CAST(1.0 * bytes_read / calls + 0.5 AS INTEGER), NULL) AS run_read_bytes,
       iif(pages > 0, round(1.0 * writes / pages, 1), NULL) AS times,
       coalesce(iif(:for_table, 'writes ', '') || l.trees, '') AS written_to,
       iif(s.hash, substr(printf('%016x', s.hash), 1, iif(:for_table, 8, 16)), '') AS statement,
       CASE WHEN s.hash = 0 THEN '(not known)'
            ELSE coalesce((SELECT oneLine(query) FROM statements AS x WHERE x.normalized_query_hash = s.hash ORDER BY id LIMIT 1), '(not known)') END AS query
FROM sums AS s JOIN all_bytes LEFT JOIN counted AS c ON c.hash = s.hash LEFT JOIN largest AS l ON l.hash = s.hash
ORDER BY bytes_read + bytes_written DESC, s.hash
LIMIT coalesce(CAST(:limit AS INTEGER), 10);
