-- SPDX-License-Identifier: Apache-2.0
-- The bytes of each b-tree in each second. After pages.sql.
SELECT strftime('%Y-%m-%d %H:%M:%S', r.timestamp_ns / 1000000000, 'unixepoch') AS second,
       round(sum(r.wal_bytes) / 1e6, 3) AS wal_mb,
       round(sum(r.database_bytes) / 1e6, 3) AS database_mb,
       round(nullif(sum(r.journal_bytes), 0) / 1e6, 3) AS journal_mb,
       round(sum(r.bytes_read) / 1e6, 3) AS read_mb,
       sum(r.reads) AS reads, sum(r.writes) AS writes,
       t.what AS btree, t.database
FROM temp.page_rows AS r JOIN temp.page_trees AS t ON t.database = r.database AND t.btree = r.btree AND (t.btree <> '' OR t.kind = r.kind)
GROUP BY r.timestamp_ns / 1000000000, t.tree
ORDER BY r.timestamp_ns / 1000000000, t.tree
LIMIT coalesce(CAST(:limit AS INTEGER), -1);
