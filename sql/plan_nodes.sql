-- SPDX-License-Identifier: Apache-2.0
-- The nodes of the plans of the runs that are selected (see selected.sql), with their time: the
-- plan that took most first. node -1 is what is not known, node 0 the statement's own work. loops and
-- rows: in all of the runs, where SQLite has counted them.
-- Parameters: :trace_type; :limit, plans at most.
WITH runs AS MATERIALIZED (
	SELECT r.id, r.first_ns, r.last_ns, g.plan_hash, g.id AS program, r.query_start_ns, r.execution_time_ns
	FROM temp.selected_runs AS r JOIN programs AS g ON g.id = r.program),
times AS MATERIALIZED (
	SELECT runs.plan_hash, coalesce(o.node, -1) AS node,
	       sum(s.value) AS ns,
	       sum(1.0 * s.value * s.value) AS square
	FROM runs
	CROSS JOIN sample_values AS s ON s.timestamp_ns BETWEEN runs.first_ns AND runs.last_ns AND s.query = runs.id
		AND (s.trace_type = :trace_type OR :trace_type = 'Wall' AND s.trace_type IN ('CPU', 'OffCPU'))
	LEFT JOIN program_opcodes AS o ON o.program = runs.program AND o.address = nullif(s.opcode, 0)
	GROUP BY 1, 2),
counts AS MATERIALIZED (
	SELECT runs.plan_hash, l.node, sum(l.loops) AS loops, sum(l.rows) AS rows
	FROM runs JOIN plan_loops AS l ON l.query = runs.id GROUP BY 1, 2),
plan AS MATERIALIZED (
	SELECT plan_hash, sum(ns) AS ns,
	       (SELECT count(*) FROM runs WHERE runs.plan_hash = times.plan_hash) AS runs,
	       (SELECT max(program) FROM runs WHERE runs.plan_hash = times.plan_hash) AS program,
	       (SELECT printf('%.1f ms each, %s to %s', avg(execution_time_ns) / 1e6,
	                      strftime('%Y-%m-%d %H:%M:%S', min(query_start_ns) / 1000000000, 'unixepoch'),
	                      strftime('%Y-%m-%d %H:%M:%S', max(query_start_ns) / 1000000000, 'unixepoch'))
	        FROM runs WHERE runs.plan_hash = times.plan_hash) AS seen
	FROM times GROUP BY plan_hash ORDER BY ns DESC LIMIT coalesce(:limit, 3))
SELECT plan.plan_hash, plan.runs, x.query, n.node, n.parent, n.detail, coalesce(t.ns, 0), coalesce(t.square, 0),
       plan.seen, n.compared, c.loops, c.rows
FROM plan
JOIN programs AS g ON g.id = plan.program
JOIN statements AS x ON x.id = g.statement
JOIN (
	SELECT program, node, parent, detail, compared FROM plan_nodes
	UNION ALL SELECT id, 0, 0, '(statement)', '' FROM programs
	UNION ALL SELECT id, -1, 0, '(not known)', '' FROM programs) AS n ON n.program = plan.program
LEFT JOIN times AS t ON t.plan_hash = plan.plan_hash AND t.node = n.node
LEFT JOIN counts AS c ON c.plan_hash = plan.plan_hash AND c.node = n.node
ORDER BY plan.ns DESC, plan.plan_hash, n.node <= 0, abs(n.node);
