-- SPDX-License-Identifier: Apache-2.0
-- Where the time of a report went, by whole stack, leaf first, one function per line. :limit. :full (not NULL): with
-- all frames, not folded by foldStack(), a function of the command. :unit as in report/functions.sql. After
-- report/frames.sql.
WITH shown AS (
	SELECT iif(is_time, '%.1f', '%.0f') AS form, iif(is_time, 1e6, 1.0) AS scale
	FROM (SELECT coalesce(:unit, 'ns') = 'ns' AS is_time)),
sums AS MATERIALIZED (
	SELECT sum(value) AS value, max(last_stack) AS one FROM temp.selected_sums
	WHERE shape AND (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'))
	GROUP BY shape),
-- Exactly the shown stacks in their order, because foldStack() depends on it. Only these get texts.
top AS MATERIALIZED (
	SELECT value, one, stackFunctions(one, :full) AS stack
	FROM sums
	WHERE value >= (SELECT min(value) FROM (SELECT value FROM sums ORDER BY value DESC LIMIT coalesce(CAST(:limit AS INTEGER), 5)))
	ORDER BY value DESC, stack LIMIT coalesce(CAST(:limit AS INTEGER), 5))
SELECT printf('%.1f %%', 100.0 * value / (
	       SELECT sum(value) FROM temp.report_samples
	       WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU')))) AS share,
       printf(form, value / scale) AS ms,
       iif(:full IS NULL, foldStack(stack, stackModules(one), stackOwners(one)), stack) AS stack
FROM top, shown;
