-- SPDX-License-Identifier: Apache-2.0
-- The b-trees with the most bytes read and written, each with its bytes in the parts of the time. After
-- read/pages.sql. :no_text: if it is not NULL, no name of a table or an index. :no_paths: files without their
-- folders. cells: bytes in each part, with commas; part_ms: the length of a part, at least a second; most: the
-- greatest number in all cells. texts_reading: for an index, the statements whose plans read it.
WITH RECURSIVE
bounds AS MATERIALIZED (
	SELECT min(timestamp_ns) AS first_ns, max(timestamp_ns) + 1000000000 AS last_ns, min(60, (max(timestamp_ns) - min(timestamp_ns)) / 1000000000 + 1) AS parts
	FROM temp.page_rows),
shown AS MATERIALIZED (SELECT * FROM temp.page_trees ORDER BY tree LIMIT 30),
numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < (SELECT parts FROM bounds)),
cells AS MATERIALIZED (
	SELECT t.tree AS tree, CAST((r.timestamp_ns - b.first_ns) * 1.0 / (b.last_ns - b.first_ns) * parts AS INTEGER) AS i,
	       sum(r.bytes_read + r.bytes_written) AS bytes
	FROM temp.page_rows AS r JOIN shown AS t ON t.database = r.database AND t.btree = r.btree AND (t.btree <> '' OR t.kind = r.kind) JOIN bounds AS b
	GROUP BY 1, 2)
SELECT t.tree, iif(:no_text, iif(is_known, kind, 'not known'), what) AS btree, iif(:no_text, NULL, iif(:no_paths, fileName(database), database)) AS database,
       round(100.0 * (bytes_read + bytes_written) / (SELECT max(sum(bytes_read + bytes_written), 1) FROM temp.page_databases), 1) AS share,
       round(wal_bytes / 1e6, 3) AS wal_mb, round(database_bytes / 1e6, 3) AS database_mb, round(journal_bytes / 1e6, 3) AS journal_mb,
       round(bytes_read / 1e6, 3) AS read_mb, t.pages AS pages_written, iif(t.pages > 0, round(1.0 * writes / t.pages, 1), NULL) AS times,
       readers AS texts_reading, iif(readers IS NULL, NULL, texts) AS texts,
       (SELECT group_concat(coalesce((SELECT bytes FROM cells AS c WHERE c.tree = t.tree AND c.i = n.i), 0))
        FROM (SELECT i FROM numbers ORDER BY i) AS n) AS cells,
       (SELECT max(bytes) FROM cells) AS most,
       b.first_ns / 1000000 AS first_ms, (b.last_ns - b.first_ns) / b.parts / 1000000 AS part_ms
FROM shown AS t JOIN bounds AS b JOIN temp.page_texts
ORDER BY t.tree;
