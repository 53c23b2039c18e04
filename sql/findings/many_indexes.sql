-- SPDX-License-Identifier: Apache-2.0
-- Writes that spend their time in indexes, few of which the recorded statements read.
WITH used AS MATERIALIZED ( -- by any statement whose plan is in the file
	SELECT DISTINCT substr(rest, 1, instr(rest || ' (', ' (') - 1) AS name
	FROM (SELECT substr(detail, instr(detail, ' INDEX ') + 7) AS rest FROM plan_nodes
	      WHERE detail LIKE '% USING INDEX %' OR detail LIKE '% USING COVERING INDEX %')),
written AS MATERIALIZED (
	SELECT p.hash AS hash, n.detail AS detail, max((SELECT count(DISTINCT p1) FROM program_opcodes AS o
	       WHERE o.program = n.program AND o.node = n.node AND o.opcode IN ('IdxInsert', 'IdxDelete'))) AS indexes
	FROM (SELECT DISTINCT hash, program FROM temp.finding_programs) AS p JOIN plan_nodes AS n ON n.program = p.program
	WHERE n.detail LIKE 'MODIFY INDEXES OF %' AND n.parent = 0 GROUP BY 1, 2)
SELECT w.hash AS hash, ns * (1 - 1.0 * (SELECT count(*) FROM used) / indexes) AS saved, error, indexes, substr(w.detail, length('MODIFY INDEXES OF ') + 1) AS "table",
       duration(ns) AS took, printf('%.0f', 100.0 * ns / f.wall) AS share,
       coalesce((SELECT 'only ' || group_concat(name, ', ') FROM used), 'none') AS used
FROM written AS w JOIN temp.finding_nodes AS n ON n.hash = w.hash AND n.detail = w.detail JOIN temp.finding_statements AS f ON f.hash = w.hash
WHERE indexes >= 4 AND (SELECT count(*) FROM used) < 0.5 * indexes AND ns >= 0.5 * f.wall;
