-- SPDX-License-Identifier: Apache-2.0
-- The b-trees with the most bytes read and written. After pages.sql.
WITH all_bytes AS MATERIALIZED (SELECT max(sum(bytes_read + bytes_written), 1) AS bytes FROM temp.page_databases)
SELECT round(100.0 * (bytes_read + bytes_written) / bytes, 1) AS "share_%",
       round(wal_bytes / 1e6, 3) AS wal_mb,
       round(database_bytes / 1e6, 3) AS database_mb,
       round(nullif(journal_bytes, 0) / 1e6, 3) AS journal_mb,
       round(bytes_read / 1e6, 3) AS read_mb,
       (SELECT round(1.0 * w.pages * page_size / 1e6, 3) FROM temp.page_walked AS w WHERE w.root_page = t.root_page AND w.database = t.database) AS size_mb,
       reads, writes, t.pages AS pages_written,
       iif(t.pages > 0, round(1.0 * writes / t.pages, 1), NULL) AS times,
       iif(:for_table, iif(readers IS NOT NULL, printf('%d of %d', readers, texts), NULL), readers) AS texts_reading,
       iif(:for_table, NULL, iif(readers IS NOT NULL, texts, NULL)) AS texts,
       iif(:for_table, NULL, kind) AS kind,
       iif(:for_table, what, btree) AS btree,
       iif(:for_table, NULL, "table") AS "table",
       iif(:for_table, NULL, root_page) AS root_page,
       CASE WHEN NOT :for_table THEN database WHEN (SELECT count(*) FROM temp.page_databases) > 1 THEN fileName(database) END AS database
FROM temp.page_trees AS t JOIN all_bytes JOIN temp.page_texts
ORDER BY tree
LIMIT coalesce(CAST(:limit AS INTEGER), 10);
