-- SPDX-License-Identifier: Apache-2.0
-- Where the program's own time went while the selected queries, or any transactions, were open: by what it did, and
-- the function: the program's own, or what its line called, or else that of the native stack (see stackPlace()). share:
-- of its line's `where`. line: the place of the call or of the code. :limit. After report/frames.sql.
WITH functions AS MATERIALIZED (
	SELECT stack_id, call_stack, coalesce((SELECT function || char(10) || fileName(caller) FROM call_stacks WHERE id = call_stack),
	                                      stackPlace(stack_id)) AS function
	FROM (SELECT DISTINCT stack_id, call_stack FROM temp.report_program)),
sums AS MATERIALIZED (
	SELECT is_rows, iif(trace_type = 'ProgramCPU', 'on CPU', (SELECT name FROM wait_causes WHERE cause = wait & 255)) AS what,
	       coalesce(function, '') AS place, sum(value) AS value
	FROM temp.report_program LEFT JOIN functions USING (stack_id, call_stack)
	GROUP BY 1, 2, 3),
-- The line of each function that took the most time.
places AS MATERIALIZED (
	SELECT is_rows, what, substr(place, 1, instr(place || char(10), char(10)) - 1) AS function,
	       substr(place, instr(place || char(10), char(10)) + 1) AS line, sum(value) AS value, max(value)
	FROM sums GROUP BY 1, 2, 3)
SELECT iif(is_rows, 'between rows', 'in a transaction') AS "where",
       printf('%.1f', value / 1e6) AS ms,
       printf('%.1f %%', 100.0 * value / sum(value) OVER (PARTITION BY is_rows)) AS share,
       what,
       iif(function = '', '(not known)', function) AS function,
       line
FROM places
ORDER BY sum(value) OVER (PARTITION BY is_rows) DESC, is_rows DESC, value DESC, what, function
LIMIT coalesce(CAST(:limit AS INTEGER), 10);
