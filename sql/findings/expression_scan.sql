-- SPDX-License-Identifier: Apache-2.0
-- A scan of a whole table that chooses rows by an expression, a function or a pattern, so an index of the column cannot help.
SELECT hash, saved, error, shown AS "table", coalesce(nullif(substr(compared, length('in expressions: ') + 1), ''), 'its columns') AS columns,
       printf('%,d', visited) AS visited, printf('%,d', returned) AS returned, duration(ns) AS took,
       CASE WHEN query GLOB '* [Ll][Ii][Kk][Ee] [A-Za-z]*.[A-Za-z]*'
            THEN 'a pattern that is a column cannot use an index: compare with = if it is no pattern, COLLATE NOCASE if case does not matter'
            WHEN query LIKE '% REGEXP %' OR query LIKE '% MATCH %'
            THEN 'no index serves this operator: choose few rows by another condition with an index; FTS5 finds words'
            WHEN query LIKE '% LIKE %' OR query LIKE '% GLOB %'
            THEN 'a pattern that begins with text can use an index: GLOB ''text*'', or LIKE with '
                 || iif(name <> '' AND compared LIKE 'in expressions: %' AND compared NOT LIKE '%, %',
                        printf('CREATE INDEX "%w" ON "%w"("%w" COLLATE NOCASE)', name || '_' || substr(compared, 17) || '_nocase', name, substr(compared, 17)),
                        'an index of the column COLLATE NOCASE') || '; one that begins with % needs FTS5'
            ELSE 'compare the column itself, or CREATE INDEX ... ON ' || name || '(the expression); such an index serves only the same expression, written alike' END AS cure
FROM temp.finding_scans
WHERE compared LIKE 'in expressions: %' OR compared = '' AND detail LIKE '% USING COVERING INDEX %' AND query LIKE '% LIKE %';
