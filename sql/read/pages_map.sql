-- SPDX-License-Identifier: Apache-2.0
-- The bytes of each b-tree over time, as blocks in :width parts of it; a full block is the greatest sum of all. After pages.sql.
WITH RECURSIVE
bounds AS MATERIALIZED (
	SELECT min(timestamp_ns) AS first_ns, max(timestamp_ns) + 1000000000 AS last_ns,
	       -- Rows are sums of about a second: narrower parts would be empty by turns.
	       max(1, min(CAST(:width AS INTEGER), (max(timestamp_ns) - min(timestamp_ns)) / 1000000000 + 1)) AS parts
	FROM temp.page_rows),
shown AS MATERIALIZED (SELECT * FROM temp.page_trees ORDER BY tree LIMIT coalesce(CAST(:limit AS INTEGER), 10)),
numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < (SELECT parts FROM bounds)),
cells AS MATERIALIZED (
	SELECT t.tree AS tree, CAST((r.timestamp_ns - b.first_ns) * 1.0 / (b.last_ns - b.first_ns) * parts AS INTEGER) AS i,
	       sum(r.bytes_read + r.bytes_written) AS bytes
	FROM temp.page_rows AS r JOIN shown AS t ON t.database = r.database AND t.btree = r.btree AND (t.btree <> '' OR t.kind = r.kind) JOIN bounds AS b
	GROUP BY 1, 2),
most AS MATERIALIZED (SELECT max(max(bytes), 1) AS bytes FROM cells)
SELECT t.what || iif((SELECT count(*) FROM temp.page_databases) > 1, ' in ' || fileName(t.database), '') AS what,
       rtrim((SELECT group_concat(coalesce((SELECT iif(c.bytes = 0, ' ', substr('▁▂▃▄▅▆▇█', 1 + min(7, c.bytes * 8 / m.bytes), 1))
                                      FROM cells AS c, most AS m WHERE c.tree = t.tree AND c.i = n.i), ' '), '')
        FROM (SELECT i FROM numbers ORDER BY i) AS n)) AS blocks,
       (b.last_ns - b.first_ns) / 1e9 AS seconds,
       m.bytes / 1e6 AS most_mb
FROM shown AS t, bounds AS b, most AS m ORDER BY t.tree;
