-- SPDX-License-Identifier: Apache-2.0
-- The newest plan of the statement ?1 in a recording, as text: the version and file of the library, then a line for each node, in
-- the order of EXPLAIN QUERY PLAN. Nodes of triggers, and those that it does not name, are left out or not compared.
WITH RECURSIVE made (program, node) AS (
	SELECT program, node FROM plan_nodes WHERE detail LIKE 'TRIGGER %' OR detail = 'FOREIGN KEY ACTION'
	UNION SELECT n.program, n.node FROM made AS m JOIN plan_nodes AS n ON n.program = m.program AND n.parent = m.node)
SELECT l.version || ' ' || l.path || char(10) || group_concat(n.detail, char(10))
FROM (
	SELECT g.id, g.library FROM programs AS g JOIN statements AS x ON x.id = g.statement
	WHERE x.query <> '' AND iif(x.is_cut, substr(?1, 1, length(x.query)), rtrim(?1, '; ' || char(9) || char(10))) = x.query
	ORDER BY length(x.query) DESC, g.first_seen_ns DESC LIMIT 1) AS g
JOIN libraries AS l ON l.id = g.library
JOIN (SELECT * FROM plan_nodes ORDER BY program, node) AS n ON n.program = g.id
	AND NOT EXISTS (SELECT 1 FROM made AS m WHERE m.program = n.program AND m.node = n.node)
GROUP BY g.id;
