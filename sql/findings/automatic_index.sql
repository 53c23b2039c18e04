-- SPDX-License-Identifier: Apache-2.0
-- An index that SQLite builds in each run, and forgets at its end.
SELECT n.hash AS hash, sum(whole) AS saved, sqrt(sum(whole_error * whole_error)) AS error, name AS "table",
       columns, printf('%,d', max(autoindexes)) AS built, duration(sum(whole)) AS took,
       printf('CREATE INDEX "%w" ON "%w"("%s");', name || '_' || replace(columns, ', ', '_'), name, replace(columns, ', ', '", "')) AS cure
FROM (SELECT *, replace(replace(replace(substr(detail, instr(detail, '(') + 1, instr(detail, ')') - instr(detail, '(') - 1), ' AND ', ', '), '=?', ''), '>?', '') AS columns
      FROM temp.finding_tables WHERE detail LIKE '% AUTOMATIC %INDEX (%') AS n
JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE autoindexes > 0 AND name <> '' AND columns NOT LIKE '%?%'
GROUP BY n.hash, name, columns;
