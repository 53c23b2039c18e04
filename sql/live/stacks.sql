-- SPDX-License-Identifier: Apache-2.0
-- The stacks of a statement from :from_ns on, the most expensive first. Parameters: :hash, :from_ns, :now_ns.
SELECT r.ns, replace(stackFunctions(k.trace, NULL), char(10), ' < ') AS stack
FROM (
	SELECT s.stack, sum(s.size + s.weight * e.period_ns) AS ns
	FROM samples AS s
	JOIN series AS e ON e.id = s.series
	JOIN queries AS q ON q.id = s.query
	JOIN statements AS x ON x.id = q.statement
	WHERE s.timestamp_ns BETWEEN :from_ns AND :now_ns AND e.trace_type IN ('CPU', 'OffCPU') AND x.normalized_query_hash = :hash AND s.stack
	GROUP BY 1 ORDER BY ns DESC LIMIT 20) AS r
JOIN stacks AS k ON k.id = r.stack
ORDER BY r.ns DESC;
