-- SPDX-License-Identifier: Apache-2.0
-- A scan of a whole table that compares the first column of an index. The comparison has another collation or affinity than
-- the index, or it is not known why SQLite does not use it. The recorded program's SQLite has confirmed each reason.
WITH marked AS (
	SELECT *, substr(compared, instr(compared, '; index ') + 8) AS tail, substr(compared, 1, instr(compared, ';') - 1) AS columns
	FROM temp.finding_scans WHERE compared LIKE '%; index % is not searched: %'),
parts AS (
	SELECT *, substr(tail, 1, instr(tail, ') is not searched: ') - 1) AS named, substr(tail, instr(tail, ') is not searched: ') + 19) AS reasons
	FROM marked),
named AS (
	SELECT *, substr(named, 1, instr(named, ' (') - 1) AS "index", substr(named, instr(named, ' (') + 2) AS "column",
	       substr(reasons, 1, instr(reasons || ';', ';') - 1) AS reason
	FROM parts)
SELECT hash, saved, error, shown AS "table", "index", "column", reason, printf('%,d', visited) AS visited, printf('%,d', returned) AS returned,
       duration(ns) AS took,
       CASE WHEN reason LIKE 'the comparison has the collation %'
            THEN printf('CREATE INDEX "%w" ON "%w"("%w" COLLATE %s);', shown || '_' || "column" || '_' || lower(substr(reason, 34)), shown, "column", substr(reason, 34))
            WHEN reason = 'the comparison is of numbers'
            THEN printf('declare %s and what it is compared with as one type; or compare with CAST(... AS TEXT), if the texts are written alike', "column")
            ELSE iif(reason LIKE '%no sqlite_stat1', 'ANALYZE; if the plan stays the same, ', '')
                 || 'write the condition without OR or a NULL test on a parameter; queryprof analyze DATABASE ''this statement'' --against ''the other'' measures both' END AS cure,
       iif(reason LIKE 'the comparison has the collation %', 'https://www.sqlite.org/datatype3.html#collation',
           iif(reason = 'the comparison is of numbers', 'https://www.sqlite.org/datatype3.html#type_conversions_prior_to_comparison',
               'https://www.sqlite.org/optoverview.html and https://www.sqlite.org/lang_analyze.html')) AS document
FROM named
WHERE reason NOT LIKE 'why is not known%' OR columns NOT LIKE '%, %';
