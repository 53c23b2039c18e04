-- SPDX-License-Identifier: Apache-2.0
-- The nodes of the selected runs' plans (see read/selected.sql), with their time; the most expensive plan comes
-- first. Other plans of these statements follow without a time, because short runs have no samples; so do all plans if only
-- one statement is selected. node -1 is time that is not known, -2 preparing the statement, -3 resetting or
-- finalizing it, -4 the time in a run queue, 0 the statement's own work. loops and rows: in all of the runs, if they were counted.
-- estimate: rows that the planner expected of each start of a loop, if SQLite has counted. is_cut: the program has a limit of rows.
-- Parameters: :trace_type; :limit, plans at most.
WITH runs AS MATERIALIZED (
	SELECT r.program, r.runs, r.fullscan_steps, r.rows, r.finished
	FROM temp.program_sums AS r JOIN programs AS g ON g.id = r.program),
-- A statement is prepared many times, and a node's number is an address of the program. Programs with the same plan
-- have the same nodes in the same order, so the newest program represents all.
known AS MATERIALIZED (
	SELECT g.id AS program, x.normalized_query_hash AS hash, g.plan_hash AS plan_hash,
	       max(g.id) OVER (PARTITION BY x.normalized_query_hash, g.plan_hash,
	                                    (SELECT count(*) FROM plan_nodes AS n WHERE n.program = g.id)) AS newest
	FROM programs AS g JOIN statements AS x ON x.id = g.statement
	WHERE g.id IN (SELECT program FROM runs)
	   OR (x.normalized_query_hash, g.plan_hash) IN (SELECT hash, plan_hash FROM temp.selected_periods)),
samples_of AS MATERIALIZED (
	SELECT hash, program, iif(queued AND phase = -1, -4, phase) AS node, value AS ns, square, trace_type
	FROM temp.selected_sums
	WHERE logged AND (trace_type = :trace_type OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'))),
costs AS MATERIALIZED (
	SELECT newest, sum(ns) AS ns FROM samples_of AS s JOIN known USING (hash, program)
	WHERE node <= 0 OR EXISTS (SELECT 1 FROM plan_nodes AS n WHERE n.program = s.program AND n.node = s.node)
	GROUP BY 1),
plan AS MATERIALIZED (
	SELECT newest, max(ns) AS ns
	FROM (SELECT newest, ns FROM costs
	      UNION ALL
	      SELECT newest, 0 FROM known
	      WHERE hash IN (SELECT hash FROM known JOIN costs USING (newest))
	         OR (SELECT count(*) FROM temp.selected_statements) = 1)
	GROUP BY 1 ORDER BY ns DESC, newest LIMIT coalesce(:limit, 3)),
-- Only the nodes of these: a statement may have thousands of programs.
shown AS MATERIALIZED (SELECT program, newest, hash, plan_hash FROM known WHERE newest IN (SELECT newest FROM plan)),
places AS MATERIALIZED (
	SELECT program, node, row_number() OVER (PARTITION BY program ORDER BY node) AS place
	FROM plan_nodes WHERE program IN (SELECT program FROM shown)
	UNION ALL SELECT program, 0, 0 FROM shown
	UNION ALL SELECT program, -1, -1 FROM shown
	UNION ALL SELECT program, -2, -2 FROM shown
	UNION ALL SELECT program, -3, -3 FROM shown
	UNION ALL SELECT program, -4, -4 FROM shown),
nodes AS MATERIALIZED (
	SELECT p.program, p.node, n.program AS newest, n.node AS newest_node
	FROM shown AS k
	JOIN places AS p ON p.program = k.program
	JOIN places AS n ON n.program = k.newest AND n.place = p.place),
times AS MATERIALIZED (
	SELECT newest, newest_node AS node, sum(ns) AS ns, sum(square) AS square
	FROM samples_of JOIN nodes USING (program, node) GROUP BY 1, 2),
-- SQLite counts the rows of all Bloom filters of a statement together, so the count belongs to a filter only if it is the
-- only one.
filters AS MATERIALIZED (
	SELECT program, max(node) AS filter FROM plan_nodes
	WHERE program IN (SELECT program FROM shown) AND detail GLOB 'BLOOM FILTER ON *' GROUP BY program HAVING count(*) = 1),
counts AS MATERIALIZED (
	SELECT newest, newest_node AS node, sum(l.loops) AS loops, sum(l.rows) AS rows,
	       iif(count(*) = count(l.estimate), sum(l.loops * l.estimate) / nullif(sum(l.loops), 0), NULL) AS estimate
	FROM plan_loops AS l CROSS JOIN temp.selected AS s ON s.id = l.query CROSS JOIN queries AS q ON q.id = l.query
	JOIN nodes AS n ON n.program = q.program AND n.node = iif(l.node = -4, (SELECT filter FROM filters AS f WHERE f.program = q.program), l.node)
	WHERE q.finished OR q.statement
	GROUP BY 1, 2),
-- All runs with the plan, whether they have samples or not.
seen AS MATERIALIZED (
	SELECT newest, sum(runs) AS runs,
	       printf('%s each, %s to %s', iif(sum(ns) < 100000 * sum(runs), printf('%.1f us', sum(ns) / 1e3 / sum(runs)), printf('%.1f ms', sum(ns) / 1e6 / sum(runs))),
	              strftime('%Y-%m-%d %H:%M:%S', min(start_ns) / 1000000000, 'unixepoch'),
	              strftime('%Y-%m-%d %H:%M:%S', max(last_ns) / 1000000000, 'unixepoch')) AS seen
	FROM (SELECT DISTINCT newest, hash, plan_hash FROM shown) JOIN temp.selected_periods USING (hash, plan_hash)
	GROUP BY 1),
-- The rows that scans of whole tables visited, and the rows that the statement returned, in a logged run.
visited AS MATERIALIZED (
	SELECT newest, 1.0 * sum(fullscan_steps) / sum(runs) AS steps, 1.0 * sum(rows) / sum(runs) AS rows
	FROM runs JOIN shown USING (program) WHERE finished GROUP BY 1)
SELECT plan.newest AS plan, coalesce(seen.runs, (SELECT coalesce(sum(runs), 0) FROM runs JOIN shown USING (program) WHERE shown.newest = plan.newest)) AS runs,
       x.query AS query, n.node AS node, n.parent AS parent, n.detail AS detail, coalesce(t.ns, 0) AS ns, coalesce(t.square, 0) AS square,
       coalesce(seen.seen, 'not ended') AS seen, n.compared AS compared, c.loops AS loops, c.rows AS rows, visited.steps AS steps,
       visited.rows AS returned, printf('%016x', x.normalized_query_hash) AS statement, c.estimate AS estimate,
       EXISTS (SELECT 1 FROM program_opcodes AS o WHERE o.program = plan.newest AND o.opcode = 'DecrJumpZero') AS is_cut
FROM plan
LEFT JOIN seen USING (newest)
LEFT JOIN visited USING (newest)
JOIN programs AS g ON g.id = plan.newest
JOIN statements AS x ON x.id = g.statement
JOIN (
	SELECT program, node, parent, detail, compared FROM plan_nodes WHERE program IN (SELECT newest FROM plan)
	UNION ALL SELECT newest, 0, 0, '(statement)', '' FROM plan
	UNION ALL SELECT newest, -1, 0, '(not known)', '' FROM plan
	UNION ALL SELECT newest, -2, 0, '(preparing)', '' FROM plan
	UNION ALL SELECT newest, -3, 0, '(closing)', '' FROM plan
	UNION ALL SELECT newest, -4, 0, '(run queue)', '' FROM plan) AS n ON n.program = plan.newest
LEFT JOIN times AS t ON t.newest = plan.newest AND t.node = n.node
LEFT JOIN counts AS c ON c.newest = plan.newest AND c.node = n.node
ORDER BY plan.ns DESC, plan.newest, n.node <= 0, abs(n.node);
