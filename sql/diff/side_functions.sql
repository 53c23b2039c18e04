-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql). After report/frames.sql.
-- Each function once a stack, however often it recurs there. Two builds of a library
-- differ in addresses and version, so a function is its name and that of its module
-- without what follows ".so". Code without a name is one function a module.
WITH functions AS (
	SELECT stack_id,
	       CASE WHEN has_name THEN function
	            WHEN module = '' THEN '(no module)'
	            ELSE '(' || module || ')' END AS name,
	       module, min(depth) = 0 AS is_leaf
	FROM (SELECT stack_id, depth, function, has_name,
	             CASE WHEN instr(module, '.so.') THEN substr(module, 1, instr(module, '.so.') + 2)
	                  ELSE module END AS module
	      FROM temp.report_frames)
	GROUP BY stack_id, name, module),
parts AS MATERIALIZED (
	SELECT stack_id, coalesce(normalized_query_hash, 0) AS hash, count(*) AS samples, sum(value) AS value,
	       sum(1.0 * value * value) AS square
	FROM temp.selected_samples LEFT JOIN queries ON queries.id = run LEFT JOIN statements ON statements.id = statement
	WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'))
	GROUP BY stack_id, hash)
SELECT hash, name, module, sum(value * is_leaf), sum(samples * is_leaf), sum(square * is_leaf),
       sum(value), sum(samples), sum(square)
FROM functions JOIN parts USING (stack_id)
GROUP BY hash, name, module;
