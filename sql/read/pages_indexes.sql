-- SPDX-License-Identifier: Apache-2.0
-- The indexes that were written, those that no recorded statement reads first, with the time for which that was observed. After pages.sql.
SELECT round(100 * share, 1) AS "share_%",
       round(wal_bytes / 1e6, 3) AS wal_mb,
       round(database_bytes / 1e6, 3) AS database_mb,
       pages AS pages_written,
       iif(pages > 0, round(1.0 * writes / pages, 1), NULL) AS times,
       readers AS texts_reading, texts, unknown_texts,
       iif(readers = 0 AND NOT is_automatic, 'no', 'yes') AS is_read,
       btree AS "index", "table",
       (SELECT strftime('%Y-%m-%d %H:%M:%S', min(first_seen_ns) / 1000000000, 'unixepoch') FROM statement_counters) AS since,
       (SELECT strftime('%Y-%m-%d %H:%M:%S', max(last_seen_ns) / 1000000000, 'unixepoch') FROM statement_counters) AS until,
       database
FROM temp.page_indexes JOIN temp.page_texts
ORDER BY readers > 0 OR is_automatic, share DESC, database, btree
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
