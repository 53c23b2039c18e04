-- SPDX-License-Identifier: Apache-2.0
-- The waits of a report by cause, object and stack, leaf first, those that took most first. longest is the longest
-- single sampled wait. :limit; :full as in report/stacks.sql. After report/samples.sql.
WITH waits AS MATERIALIZED (
	SELECT wait, stack_id, value, longest FROM temp.report_samples WHERE trace_type = 'OffCPU'),
sums AS MATERIALIZED (
	SELECT wait, shape, sum(value) AS value, max(longest) AS longest, max(stack_id) AS one
	FROM waits LEFT JOIN temp.report_shapes USING (stack_id) GROUP BY wait, shape),
-- Exactly the shown stacks in their order, because foldStack() depends on it. Only these get texts.
top AS MATERIALIZED (
	SELECT *, coalesce(stackFunctions((SELECT trace FROM stacks WHERE id = one), :full), '') AS stack
	FROM sums
	WHERE value >= (SELECT min(value) FROM (SELECT value FROM sums ORDER BY value DESC LIMIT coalesce(CAST(:limit AS INTEGER), 5)))
	ORDER BY value DESC, wait, stack LIMIT coalesce(CAST(:limit AS INTEGER), 5)),
shown AS MATERIALIZED (
	SELECT shape, max(stackModules(trace)) AS modules, max(stackOwners(trace)) AS owners
	FROM (SELECT DISTINCT shape, stack_id FROM waits JOIN temp.report_shapes USING (stack_id)
	      WHERE shape IN (SELECT shape FROM top)) JOIN stacks ON stacks.id = stack_id
	GROUP BY shape),
texts AS (
	SELECT top.*, coalesce(modules, '') AS modules, coalesce(owners, '') AS owners
	FROM top LEFT JOIN shown USING (shape) ORDER BY value DESC, wait, stack)
SELECT printf('%.1f %%', 100.0 * value / (SELECT sum(value) FROM waits)) AS share,
       printf('%.1f', value / 1e6) AS ms,
       printf('%.1f', longest / 1e6) AS longest_ms,
       coalesce((SELECT name FROM wait_causes WHERE cause = wait & 255)
                || coalesce(' ' || (SELECT name FROM wait_objects WHERE object = wait >> 8), ''), '') AS wait,
       iif(:full IS NULL, foldStack(stack, modules, owners), stack) AS stack
FROM texts;
