-- SPDX-License-Identifier: Apache-2.0
-- Sorting, of the statement itself. What a SELECT writes are temporary files, if it does not fit into the page cache.
SELECT n.hash AS hash, sum(ns) AS saved, sqrt(sum(error * error)) AS error,
       substr(detail, length('USE TEMP B-TREE FOR ') + 1) AS what, duration(sum(ns)) AS took, printf(iif(max(sorts) = 1, '%,d sort', '%,d sorts'), max(sorts)) AS sorts,
       -- DISTINCT after a join removes the rows that the join has multiplied.
       CASE WHEN detail LIKE '% DISTINCT' AND query LIKE 'SELECT DISTINCT % JOIN %'
            THEN 'if the join multiplies the rows: WHERE EXISTS (SELECT 1 FROM ...) instead of JOIN, which needs no DISTINCT; otherwise an index' ELSE 'an index' END AS first_cure,
       CASE WHEN spilled > 1000000 THEN printf('; its logged runs wrote %.1f MB to temporary files', max(spilled) / 1e6) ELSE '' END AS files,
       CASE WHEN spilled > 1000000 THEN '; a larger PRAGMA cache_size or PRAGMA temp_store = MEMORY sorts without files; to sort keys alone and then read large columns by id writes less' ELSE '' END AS or_memory
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
LEFT JOIN (SELECT hash, sum(write_bytes) AS spilled FROM temp.run_sums GROUP BY 1) AS r ON r.hash = n.hash AND (f.query LIKE 'SELECT%' OR f.query LIKE 'VALUES%')
WHERE (detail LIKE 'USE TEMP B-TREE FOR %ORDER BY' OR detail LIKE 'USE TEMP B-TREE FOR GROUP BY' OR detail LIKE 'USE TEMP B-TREE FOR DISTINCT')
  AND query NOT LIKE '%ORDER BY RANDOM()%' -- random_order
  -- Sorting inside a view or subquery that is a finding of its own (whole_view).
  AND NOT EXISTS (SELECT 1 FROM temp.finding_views AS v WHERE v.hash = n.hash AND instr(n.around || char(10), char(10) || v.detail || char(10)))
GROUP BY n.hash, detail;
