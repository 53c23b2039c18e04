-- SPDX-License-Identifier: Apache-2.0
-- Triggers that take most of a statement's time.
SELECT n.hash AS hash, sum(whole) AS saved, sqrt(sum(whole_error * whole_error)) AS error, substr(detail, length('TRIGGER ') + 1) AS name,
       duration(sum(whole)) AS took,
       -- A sample names the part of the trigger that a statement fires, but not the parts of triggers that this one fires.
       (SELECT i.detail || iif(i.detail LIKE 'TRIGGER %', ', which it fires (its parts are not known), ', ', ') || duration(sum(i.ns)) FROM temp.finding_nodes AS i WHERE i.hash = n.hash AND instr(i.around || char(10), char(10) || n.detail || char(10))
        GROUP BY i.detail ORDER BY sum(i.ns) DESC LIMIT 1) AS most,
       coalesce((SELECT printf('an index on %s(%s), which it reads as a whole to compare %s', i."table", i.columns, i.columns)
                 FROM (SELECT *, substr(compared, 1, instr(compared || ';', ';') - 1) AS columns FROM temp.finding_tables) AS i
                 WHERE i.hash = n.hash AND instr(i.around || char(10), char(10) || n.detail || char(10)) AND i.detail LIKE 'SCAN %' AND i.columns <> ''
                   AND i.columns NOT LIKE 'in expressions:%'
                 ORDER BY i.ns DESC LIMIT 1), 'an index or less work for that part') AS first_cure, printf('%.0f', 100.0 * sum(whole) / f.wall) AS share
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE detail LIKE 'TRIGGER %' AND around NOT LIKE '%TRIGGER %'
GROUP BY n.hash, detail HAVING sum(whole) > 0.5 * f.wall;
