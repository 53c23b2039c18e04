-- SPDX-License-Identifier: Apache-2.0
-- A join that reads the inner table again for each row of the outer one, although no = joins them: a condition is missing, or
-- it is a range. If the inner table is searched for a range, the number of SQLite's steps shows how many rows it found; the rows
-- of a scan are counted. A scan that compares columns is another finding (unindexed_scan).
WITH inner_loops AS MATERIALIZED (
	SELECT *, substr(around, 2, instr(substr(around, 2) || char(10), char(10)) - 1) AS outer FROM temp.finding_tables
	WHERE (detail LIKE 'SCAN %' AND compared = '' OR detail LIKE 'SEARCH % (%' AND detail NOT LIKE '%=?%' AND detail LIKE '%USING%') AND detail NOT LIKE '%AUTOMATIC%')
SELECT i.hash AS hash, f.wall AS saved, NULL AS error, coalesce(nullif(i.name, ''), i."table") AS inner_table, o.shown AS outer_table, duration(f.wall) AS took,
       printf('%,d', f.vm_steps / f.runs) AS steps, printf('%,d', f.fullscan_steps / f.runs) AS visited, printf('%,d', f.rows / f.runs) AS returned,
       printf(iif(f.runs = 1, '%,d run', '%,d runs'), f.runs) AS runs
FROM inner_loops AS i JOIN temp.finding_statements AS f ON f.hash = i.hash
JOIN (SELECT hash, detail, coalesce(nullif(name, ''), "table") AS shown, sum(whole) AS whole FROM temp.finding_tables GROUP BY hash, detail) AS o ON o.hash = i.hash AND o.detail = i.outer
-- The outer table is scanned or searched for a range, not for one row.
WHERE o.whole >= 0.15 * f.wall AND iif(o.detail LIKE 'SCAN %', f.fullscan_steps >= 10 * f.runs, o.detail NOT LIKE '%=?%' AND o.detail LIKE 'SEARCH % USING %(%')
  AND iif(i.detail LIKE 'SCAN %', f.fullscan_steps > 1000 * max(f.rows, f.runs), f.vm_steps > 200 * max(f.fullscan_steps, f.rows) AND f.vm_steps > 100000 * f.runs)
GROUP BY i.hash;
