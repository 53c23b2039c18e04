-- SPDX-License-Identifier: Apache-2.0
-- A node of a program's plan and its enclosing nodes, the innermost first. Parameters: :program, :node.
WITH RECURSIVE around (level, node, parent, detail) AS (
	SELECT 0, node, parent, detail FROM plan_nodes WHERE program = :program AND node = :node
	UNION ALL
	SELECT level + 1, p.node, p.parent, p.detail
	FROM around JOIN plan_nodes AS p ON p.program = :program AND p.node = around.parent
	WHERE around.parent <> 0 AND level < 50)
SELECT detail FROM around ORDER BY level;
