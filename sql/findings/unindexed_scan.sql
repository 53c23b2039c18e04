-- SPDX-License-Identifier: Apache-2.0
-- A scan of a whole table that compares columns, which gives few of the rows.
WITH scans AS (
	SELECT n.*, f.fullscan_steps AS visited, f.rows AS returned, f.runs AS runs, query,
	       substr(compared, 1, instr(compared || ';', ';') - 1) AS columns
	FROM temp.finding_tables AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
	WHERE detail LIKE 'SCAN %' AND compared NOT LIKE 'in expressions:%' AND compared <> '')
SELECT hash, ns * (1 - min(1, 1.0 * returned / max(visited, 1))) AS saved, error, coalesce(nullif(name, ''), "table") AS "table", columns,
       printf('%,d', visited) AS visited, printf('%,d', returned) AS returned, duration(ns) AS took,
       iif(name = '', 'an index on ' || "table" || '(' || columns || ')',
           printf('CREATE INDEX "%w" ON "%w"("%s");', name || '_' || replace(columns, ', ', '_'), name, replace(columns, ', ', '", "'))) AS cure
FROM scans
WHERE visited > 20 * max(returned, 1) AND visited > 100 * runs -- a search in an index costs some rows, too
  -- Rows that a statement changes are not counted; they are few if changing them takes little.
  AND (SELECT total(n.ns) FROM temp.finding_nodes AS n WHERE n.hash = scans.hash AND n.detail LIKE 'MODIFY %') < 0.1 * ns
  AND around NOT LIKE '%FOREIGN KEY ACTION%' AND around NOT LIKE '%TRIGGER %'
  AND (name <> '' OR query LIKE 'SELECT%' OR query LIKE 'WITH%') -- a statement that changes rows reads other tables for foreign keys
  -- What builds an automatic index reads the table anyway.
  AND NOT EXISTS (SELECT 1 FROM temp.finding_nodes AS n WHERE n.hash = scans.hash AND n.detail LIKE 'SEARCH ' || scans."table" || ' USING AUTOMATIC%');
