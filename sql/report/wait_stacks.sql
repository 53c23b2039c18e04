-- SPDX-License-Identifier: Apache-2.0
-- The waits of a report by cause, object and stack, leaf first, those that took most first. longest is the longest
-- single sampled wait. :limit; :full as in report/stacks.sql. After report/samples.sql.
WITH
-- Exactly the shown stacks in their order, because foldStack() depends on it. Only these get texts.
top AS MATERIALIZED (
	SELECT *, coalesce(stackFunctions(last_stack, :full), '') AS stack
	FROM temp.report_waits
	-- In the order of all keys, because the sums are by the keys that are read.
	WHERE value >= (SELECT min(value) FROM (SELECT value FROM temp.report_waits ORDER BY value DESC, wait, shape LIMIT coalesce(CAST(:limit AS INTEGER), 5)))
	ORDER BY value DESC, wait, stack LIMIT coalesce(CAST(:limit AS INTEGER), 5))
SELECT printf('%.1f %%', 100.0 * value / (SELECT sum(value) FROM temp.report_waits)) AS share,
       printf('%.1f', value / 1e6) AS ms,
       printf('%.1f', longest / 1e6) AS longest_ms,
       coalesce((SELECT name FROM wait_causes WHERE cause = wait & 255)
                || coalesce(' ' || (SELECT name FROM wait_objects WHERE object = wait >> 8), ''), '') AS wait,
       iif(:full IS NULL, foldStack(stack, coalesce(stackModules(last_stack), ''), coalesce(stackOwners(last_stack), '')), stack) AS stack
FROM top;
