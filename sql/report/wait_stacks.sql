-- SPDX-License-Identifier: Apache-2.0
-- The waits of a report by cause, object and stack, leaf first: those that took most. longest is the
-- longest single wait that was sampled. :limit; :full as in report/stacks.sql. After read/selected.sql.
WITH waits AS MATERIALIZED (
	SELECT wait, stack_id, sum(value) AS value, max(wait_ns) AS longest
	FROM temp.selected_samples WHERE trace_type = 'OffCPU' GROUP BY wait, stack_id),
frames AS MATERIALIZED (
	SELECT stack_id, group_concat((frame.value ->> 0) || iif(frame.value ->> 3 <> '' AND (frame.value ->> 4 OR :full IS NOT NULL),
	                                                        ' (' || (frame.value ->> 3) || ')', ''), char(10)) AS stack,
	       group_concat(coalesce(frame.value ->> 1, ''), char(10)) AS modules, group_concat(frame.value ->> 4, char(10)) AS owners
	FROM (SELECT DISTINCT stack_id FROM waits) LEFT JOIN stacks ON stacks.id = stack_id
	JOIN json_each(stackFrames(coalesce(stacks.trace, '[]'))) AS frame
	GROUP BY stack_id),
-- In the order in which they are shown, and no others: foldStack() counts on it.
top AS MATERIALIZED (
	SELECT wait, sum(value) AS value, max(longest) AS longest, coalesce(stack, '') AS stack,
	       coalesce(max(modules), '') AS modules, coalesce(max(owners), '') AS owners
	FROM waits LEFT JOIN frames USING (stack_id)
	GROUP BY wait, stack ORDER BY sum(value) DESC, wait, stack
	LIMIT coalesce(CAST(:limit AS INTEGER), 5))
SELECT printf('%.1f %%', 100.0 * value / (SELECT sum(value) FROM waits)) AS share,
       printf('%.1f', value / 1e6) AS ms,
       printf('%.1f', longest / 1e6) AS longest_ms,
       coalesce((SELECT name FROM wait_causes WHERE cause = wait & 255)
                || coalesce(' ' || (SELECT name FROM wait_objects WHERE object = wait >> 8), ''), '') AS wait,
       iif(:full IS NULL, foldStack(stack, modules, owners), stack) AS stack
FROM top;
