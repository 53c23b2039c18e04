-- SPDX-License-Identifier: Apache-2.0
-- A scan of a whole table whose rows are chosen by an expression, a function or a pattern, which no index of the column serves.
WITH scans AS (
	SELECT n.*, f.fullscan_steps AS visited, f.rows AS returned, f.runs AS runs, f.query AS query,
	       substr(compared, length('in expressions: ') + 1) AS columns
	FROM temp.finding_tables AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
	WHERE detail LIKE 'SCAN %' AND (compared LIKE 'in expressions: %' OR compared = '' AND detail LIKE '% USING COVERING INDEX %' AND f.query LIKE '% LIKE %'))
SELECT hash, ns * (1 - min(1, 1.0 * returned / max(visited, 1))) AS saved, error, coalesce(nullif(name, ''), "table") AS "table",
       coalesce(nullif(columns, ''), 'its columns') AS columns,
       printf('%,d', visited) AS visited, printf('%,d', returned) AS returned, duration(ns) AS took,
       iif(query LIKE '% LIKE %' OR query LIKE '% GLOB %',
           'a pattern that begins with text can use an index: GLOB ''text*'', or LIKE on a column COLLATE NOCASE; one that begins with % needs FTS5',
           'compare the column itself, or CREATE INDEX ... ON ' || name || '(the expression)') AS cure
FROM scans
WHERE visited > 20 * max(returned, 1) AND visited > 100 * runs -- a search in an index costs some rows, too
  -- Rows that a statement changes are not counted; they are few if changing them takes little.
  AND (SELECT total(n.ns) FROM temp.finding_nodes AS n WHERE n.hash = scans.hash AND n.detail LIKE 'MODIFY %') < 0.1 * ns;
