-- SPDX-License-Identifier: Apache-2.0
-- The callers in the program: for each stack, the program's own frame nearest to SQLite, or nearest to the function
-- that took the time. :trace_type, :unit, :limit as in report/functions.sql. After report/frames.sql.
WITH shown AS (
	SELECT iif(is_time, '%.1f', '%.0f') AS form, iif(is_time, 1e6, 1.0) AS scale
	FROM (SELECT coalesce(:unit, 'ns') = 'ns' AS is_time)),
nearest AS (
	SELECT value, substr(caller, 1, instr(caller, char(10)) - 1) AS function, substr(caller, instr(caller, char(10)) + 1) AS place
	FROM temp.report_stacks JOIN temp.report_shapes USING (stack_id) WHERE caller IS NOT NULL)
SELECT printf('%.1f %%', 100.0 * sum(value) / (
	       SELECT sum(value) FROM temp.report_samples
	       WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU')))) AS share,
       printf(form, sum(value) / scale) AS ms,
       place AS line,
       function
FROM nearest, shown
GROUP BY function, place
ORDER BY sum(value) DESC, function, place
LIMIT coalesce(CAST(:limit AS INTEGER), 5);
