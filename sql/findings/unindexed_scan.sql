-- SPDX-License-Identifier: Apache-2.0
-- A scan of a whole table that compares columns and finds few of the rows.
WITH marked AS (
	SELECT *, substr(compared, 1, instr(compared || ';', ';') - 1) AS columns,
	       query LIKE '% OR %' AND substr(compared, 1, instr(compared || ';', ';') - 1) LIKE '%, %' AS has_or
	FROM temp.finding_scans WHERE compared NOT LIKE 'in expressions:%' AND compared <> ''),
-- For OR, each of its columns needs an index of its own.
scans AS (
	SELECT *, (SELECT group_concat(printf('CREATE INDEX "%w" ON "%w"("%w");', name || '_' || value, name, value), ' ')
	           FROM json_each('[' || replace(json_quote(columns), ', ', '","') || ']')
	           WHERE instr(compared, ' (' || value || ') is not searched: ') = 0) AS for_or
	FROM marked)
SELECT hash, saved, error, shown AS "table", columns, printf('%,d', visited) AS visited, printf('%,d', returned) AS returned, duration(ns) AS took,
       CASE WHEN name = '' THEN 'an index on ' || "table" || '(' || columns || ')'
            WHEN query LIKE '%) IN (VALUES %'
            THEN printf('CREATE INDEX "%w" ON "%w"("%s"); some versions of SQLite search no index for (a, b) IN (VALUES ...): WITH v AS (VALUES ...) SELECT ... FROM v JOIN, with a = column1 AND b = column2, searches it',
                        name || '_' || replace(columns, ', ', '_'), name, replace(columns, ', ', '", "'))
            WHEN has_or AND (query GLOB '*([?] IS NULL OR *' OR query GLOB '*([?][0-9]* IS NULL OR *' OR query GLOB '*([:@$]* IS NULL OR *')
            THEN 'write only the conditions of the values that are given: an OR with a test of a parameter uses no index. Then an index on those of ' || columns || ' that choose few rows'
            WHEN has_or THEN coalesce('if OR joins conditions on these columns, an index on each of them: ' || for_or || ' An OR with a test of a parameter can use none',
                                      'write the condition without OR or a NULL test on a parameter: each of these columns has an index')
            ELSE printf('CREATE INDEX "%w" ON "%w"("%s");', name || '_' || replace(columns, ', ', '_'), name, replace(columns, ', ', '", "')) END AS cure
FROM scans
WHERE around NOT LIKE '%FOREIGN KEY ACTION%' AND around NOT LIKE '%TRIGGER %'
  AND (name <> '' OR query LIKE 'SELECT%' OR query LIKE 'WITH%') -- a statement that changes rows reads other tables for foreign keys
  -- An existing index that is not used is a finding of its own (unused_index).
  AND (compared NOT LIKE '%; index % is not searched: %' OR compared LIKE '%; index % is not searched: why is not known%' AND columns LIKE '%, %')
  -- Building an automatic index reads the table anyway.
  AND NOT EXISTS (SELECT 1 FROM temp.finding_nodes AS n WHERE n.hash = scans.hash AND n.detail LIKE 'SEARCH ' || scans."table" || ' USING AUTOMATIC%');
