-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql): the plans of its statements over time. All plans count as on one database
-- (place ''), because two files may have the same database under different names. After read/selected.sql.
SELECT hash, query, '', plan_hash, substr(plan, 1, 20000), start_ns, last_ns, temp.selected_periods.runs, ns, versions
FROM temp.selected_periods JOIN temp.selected_statements USING (hash) JOIN plans USING (plan_hash)
LEFT JOIN (
	SELECT plan_hash, group_concat(version, ', ') AS versions
	FROM (SELECT DISTINCT g.plan_hash, l.version FROM programs AS g JOIN libraries AS l ON l.id = g.library ORDER BY 1, 2)
	GROUP BY 1) USING (plan_hash);
