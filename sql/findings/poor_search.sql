-- SPDX-License-Identifier: Apache-2.0
-- A search in an index of one table that reads many rows for each row that the statement returns, because its other conditions
-- discard them. An aggregate or a sort needs all rows that it reads.
SELECT n.hash AS hash, n.ns * (1 - min(1, 20.0 * max(f.rows, f.runs) / f.vm_steps)) AS saved, n.error AS error, coalesce(nullif(name, ''), "table") AS "table",
       substr(detail, instr(detail, ' INDEX ') + 7) AS "index", printf('%,d', f.vm_steps / f.runs) AS steps, printf('%,.1f', 1.0 * f.rows / f.runs) AS rows,
       duration(n.ns) AS took, iif(f.runs = 1, 'one run', printf('the mean of %,d runs', f.runs)) AS runs
FROM temp.finding_tables AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE detail LIKE 'SEARCH % USING INDEX %' AND around = '' AND n.ns >= 0.5 * f.wall AND f.vm_steps > 500 * max(f.rows, f.runs) AND f.vm_steps > 5000 * f.runs
  AND (SELECT count(*) FROM temp.finding_tables AS t WHERE t.hash = n.hash) = 1 AND query LIKE 'SELECT%' AND query NOT LIKE '%(SELECT%' AND query NOT LIKE '%( SELECT%'
  AND query NOT LIKE '% GROUP BY %' AND query NOT LIKE '%DISTINCT%' AND query NOT LIKE '% OVER %' AND query NOT LIKE '% OFFSET %' AND f.sorts = 0
  AND query NOT LIKE '% UNION %' AND query NOT LIKE '% EXCEPT %' AND query NOT LIKE '% INTERSECT %' AND query NOT LIKE '% OR %'
  AND query NOT LIKE '% IN (%' AND query NOT LIKE '% IN(%' -- each value of a list takes steps, too
  -- Another column is compared with =, which the index of the search does not have.
  AND length(query) - length(replace(query, '=', '')) > length(detail) - length(replace(detail, '=', ''))
  AND query NOT LIKE '%count(%' AND query NOT LIKE '%sum(%' AND query NOT LIKE '%min(%' AND query NOT LIKE '%max(%' AND query NOT LIKE '%avg(%'
  AND query NOT LIKE '%total(%' AND query NOT LIKE '%group\_%(%' ESCAPE '\';
