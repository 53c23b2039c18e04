-- SPDX-License-Identifier: Apache-2.0
-- The newest plan of a statement, and the time from :from_ns on in each node itself. Parameters: :hash, :from_ns, :now_ns.
WITH RECURSIVE
one AS MATERIALIZED (
	SELECT g.id AS program FROM programs AS g JOIN statements AS x ON x.id = g.statement
	WHERE x.normalized_query_hash = :hash ORDER BY g.first_seen_ns DESC, g.id DESC LIMIT 1),
times AS MATERIALIZED (
	SELECT o.node, sum(s.size + s.weight * e.period_ns) AS ns
	FROM samples AS s
	JOIN series AS e ON e.id = s.series
	JOIN queries AS q ON q.id = s.query
	JOIN program_opcodes AS o ON o.program = q.program AND o.address = s.opcode
	WHERE s.timestamp_ns BETWEEN :from_ns AND :now_ns AND e.trace_type IN ('CPU', 'OffCPU') AND q.program = (SELECT program FROM one)
	GROUP BY 1),
tree (node, depth, place) AS (
	SELECT node, 0, printf('%010d', node) FROM plan_nodes WHERE program = (SELECT program FROM one) AND parent = 0 AND node <> 0
	UNION ALL
	SELECT n.node, t.depth + 1, t.place || printf('%010d', n.node)
	FROM tree AS t JOIN plan_nodes AS n ON n.program = (SELECT program FROM one) AND n.parent = t.node AND n.node <> 0
	WHERE t.depth < 100)
SELECT t.depth, n.detail, coalesce(s.ns, 0) AS self_ns
FROM tree AS t
JOIN plan_nodes AS n ON n.program = (SELECT program FROM one) AND n.node = t.node
LEFT JOIN times AS s ON s.node = t.node
ORDER BY t.place LIMIT 200;
