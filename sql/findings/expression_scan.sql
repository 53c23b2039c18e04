-- SPDX-License-Identifier: Apache-2.0
-- A scan of a whole table that chooses rows by an expression, a function or a pattern, so an index of the column cannot help.
SELECT hash, saved, error, shown AS "table", coalesce(nullif(substr(compared, length('in expressions: ') + 1), ''), 'its columns') AS columns,
       printf('%,d', visited) AS visited, printf('%,d', returned) AS returned, duration(ns) AS took,
       iif(query GLOB '* [Ll][Ii][Kk][Ee] [A-Za-z]*.[A-Za-z]*', 'a pattern that is a column cannot use an index: compare with = if it is no pattern, COLLATE NOCASE if case does not matter',
       iif(query LIKE '% LIKE %' OR query LIKE '% GLOB %',
           'a pattern that begins with text can use an index: GLOB ''text*'', or LIKE on a column COLLATE NOCASE; one that begins with % needs FTS5',
           'compare the column itself, or CREATE INDEX ... ON ' || name || '(the expression)')) AS cure
FROM temp.finding_scans
WHERE compared LIKE 'in expressions: %' OR compared = '' AND detail LIKE '% USING COVERING INDEX %' AND query LIKE '% LIKE %';
